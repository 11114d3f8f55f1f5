"""The identified arm: base parameters and friction with covariance, able to predict torque."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cached_property
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from steelyard._arrays import Array
from steelyard._codec import FileValue
from steelyard._kinds import INFINITE, NOT_NEGATIVE, POSITIVE, Range, Shape, Size
from steelyard._reported import Reported
from steelyard._units import NORMAL_95, rounded, with_interval
from steelyard.errors import InvalidSamples, UnreadableFile
from steelyard.identification._estimate import Estimate
from steelyard.identification._factor import RegressionFactor
from steelyard.identification._least_squares import solve_weighted
from steelyard.identification._left_out import prediction_error
from steelyard.identification._misfit import Misfit
from steelyard.identification._problem import RowMaker, Rows, require_same_joints
from steelyard.identification._validation import FrictionChoice, Validation, validation_of
from steelyard.recording import ArmIdentity, Library, Preparation, Samples, data_frame
from steelyard.robot import ParameterBasis, RobotModel
from steelyard.robot._friction import FrictionLaw
from steelyard.robot._parameters import FRICTION_AND_OFFSET_KINDS, Parameter, ParameterKind
from steelyard.robot._transmission import JointFriction
from steelyard.verdict import Doubt, DoubtKind, Verdict

if TYPE_CHECKING:
    from steelyard.drawing import Picture
    from steelyard.identification._feasible import FeasibleArm
    from steelyard.identification._feasible_space import ParameterBounds

_PLOTTED_SPEEDS = 201  # points of a plotted friction curve
_PLOTTED_RATE_HZ = 10.0  # of the motion behind the plotted friction
_MAX_RESIDUAL_RATIO = 3.0  # of saved to recomputed residuals, or the inverse
_TORQUE_SOURCE = {False: "measured torques", True: "torques from motor currents"}
_MAX_VALIDATION_ERROR = 0.5  # of a joint's torque, beyond what the fit leaves, in other runs
_FILTER_SETTINGS = ("cutoff_hz", "torque_cutoff_hz", "order", "mean_length")
_RELEVANT_SETTINGS = (*_FILTER_SETTINGS, "fourier_period_s", "fourier_harmonics", "lag_s")
"""Settings of a preparation that change an estimate."""


@dataclass(frozen=True, eq=False)
class DynamicModel(Reported, FileValue, error=InvalidSamples, kind="model", version=6):
    """An arm whose base parameters and friction were identified from measurements.

    Attributes:
        robot: kinematics and coupling of its drives
        law: of friction, with the shapes that were found
        estimate: values and covariance of the base parameters and friction coefficients
        shape_std: standard deviation of the logarithm of each free shape, (len(law.free_shapes), n)
        kinematics: whether it was fitted to 'measured' or 'commanded' motion
        made_from: the samples that it was fitted to, a sentence for each set
        factor: triangular factors of the rows it was fitted to, one for each joint of each
            recording
        choice: how the friction law was chosen; None if it was given
        from_currents: whether its torques were motor currents times the gains of `robot.drive`
        preparation: of the samples that it was fitted to; None if unknown
        temperature: mean of the drives during the fitted runs, (n,) [K or degrees Celsius]; None if
            unknown
        lag_std: standard deviation of the lag of torques behind motion, (n,) [s], infinite if the
            data do not determine it; None if it was not estimated
        motion_shift: possible bias of the parameters by noise of the measured motion, (p,); None if
            unknown
        rate_hz: sampling rate of the fitted samples, [Hz]; None if they have several
        run_spread: standard deviation of each parameter between runs, (p,) [SI]: of friction and
            offsets; None if friction of other runs is taken as unknown
        misfit: how large other causes appear in runs of the empty arm
        merged_runs: number of runs that `factor` holds merged into one, and that `run_spread` comes
            from; None if it holds each run by itself
    """

    robot: Annotated[RobotModel, Size("n", attrgetter("n"))]
    law: FrictionLaw
    estimate: Estimate
    shape_std: Annotated[Array, Shape("shapes", "n"), INFINITE, NOT_NEGATIVE]
    kinematics: Literal["measured", "commanded"]
    made_from: Sequence[str]
    factor: RegressionFactor = field(repr=False)
    choice: FrictionChoice | None = None
    from_currents: bool = False
    preparation: Preparation | None = None
    temperature: Annotated[Array | None, Shape("n"), INFINITE] = None
    lag_std: Annotated[Array | None, Shape("n"), INFINITE, NOT_NEGATIVE] = None
    motion_shift: Annotated[Array | None, Shape("p")] = None
    rate_hz: Annotated[float | None, POSITIVE] = None
    run_spread: Annotated[Array | None, Shape("p"), NOT_NEGATIVE] = None
    misfit: Misfit = field(default_factory=Misfit)
    merged_runs: Annotated[int | None, Range(1)] = None
    basis: ParameterBasis = field(init=False, repr=False)
    _maker: RowMaker = field(init=False, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        basis = ParameterBasis.of(self.robot)
        object.__setattr__(self, "basis", basis)
        object.__setattr__(self, "_maker", RowMaker(self.robot, basis, max_cached_samples=0))

    @property
    def arm(self) -> ArmIdentity:
        """The arm that was identified, as far as it is known."""
        return self.robot.arm

    def with_known_serial(self, serial: str) -> DynamicModel:
        """The same model with the serial number of its arm, unless it has one already.

        Args:
            serial: the number; empty to leave the model as it is
        """
        if not serial or self.arm.serial:
            return self
        return replace(self, robot=self.robot.with_serial(serial))

    @property
    def verdict(self) -> Verdict:
        """Whether the model may be used, and what counts against it."""
        return self.estimate.verdict

    @property
    def lag(self) -> Array:
        """The lag of torques behind motion in the fitted recordings, (n,) [s]."""
        if self.preparation is None:
            lag_s = None
        else:
            lag_s = self.preparation.lag_s
        if lag_s is None:
            return np.zeros(self.robot.n)
        return np.array(lag_s)

    @property
    def lag_sentence(self) -> str:
        """The lag of torques behind motion with 95 % intervals, as a sentence."""
        lag = 1e3 * self.lag
        std = self.lag_std
        if std is None:
            if lag.any():
                given = ", ".join(f"{x:.3g}" for x in lag)
                return f"Torques lag behind the motion by {given} ms, as given."
            return "The time offset between torques and motion was not estimated."
        half = 1e3 * NORMAL_95 * std
        if np.ptp(lag) == 0 and np.isfinite(half).all() and half.max() == half.min():
            if lag[0]:
                return (
                    f"Torques lag behind the motion by {with_interval(lag[0], half[0])} ms at every"
                    " joint."
                )
            within = float(f"{half[0]:.2g}")
            return f"Torques and motion are synchronised to within {within:g} ms."
        if not np.isfinite(half).any():
            return "The time offset between torques and motion could not be estimated."
        pairs = zip(self.robot.joint_names, lag, half, strict=True)
        each = [
            f"{name} {with_interval(x, w)}" if np.isfinite(w) else f"{name} unknown"
            for name, x, w in pairs
        ]
        return f"Torques lag behind the motion by {', '.join(each)} ms."

    @property
    def run_spread_sentence(self) -> str:
        """How much friction varies between runs (median over the joints), as a sentence."""
        if self.run_spread is None:
            return "How much friction varies between runs is not known."
        parts = []
        for kind in FRICTION_AND_OFFSET_KINDS:
            shares = self._spread_shares(kind)
            if len(shares):
                words = f"({kind.symbol})"
                if kind is ParameterKind.OFFSET:
                    words = f"of Fc ({kind.symbol})"
                parts.append(f"{100 * float(np.median(shares)):.2g} % {words}")
        if not parts:
            return "There is too little friction to say how much it varies between runs."
        if self.runs < 2:
            source = "assumed, because there is one run"
        else:
            source = f"estimated from {self.runs} runs"
        return f"Between runs friction varies by {', '.join(parts)}: standard deviations, {source}."

    def _spread_shares(self, kind: ParameterKind) -> Array:
        """Spread between runs over the friction itself, of the joints that clearly have friction.

        Args:
            kind: of friction; the spread of an offset is taken over Coulomb friction
        """
        if self.run_spread is None:
            return np.zeros(0)
        parameters = self.estimate.parameters
        n = self.robot.n
        compared = kind
        if kind is ParameterKind.OFFSET:
            compared = ParameterKind.COULOMB
        friction = np.zeros(n)
        of_friction = parameters.of_kind(compared)
        value = np.abs(self.estimate.value[of_friction])
        clear = value > NORMAL_95 * self.estimate.std[of_friction]
        friction[parameters.joints[of_friction]] = np.where(clear, value, 0.0)
        which = parameters.of_kind(kind) & (self.run_spread > 0)
        size = friction[parameters.joints[which]]
        shown = size > 0
        return np.asarray(self.run_spread[which][shown] / size[shown])

    @property
    def friction(self) -> JointFriction:
        """Friction at the joints; B includes the weight that is regrouped into it."""
        parameters = self.estimate.parameters
        value = self.estimate.value
        coefficients = self.law.coefficients(parameters, value)
        offset = value[parameters.offsets]
        return JointFriction(self.law, coefficients, offset, self.robot.drive.transmission)

    def rows(self, samples: Samples, theta: Array | None = None) -> Rows:
        """The rows of a regression in the parameters of the model, with its friction law.

        Args:
            samples: in the order of time
            theta: parameters for the torque that gears transmit, (p,); those of the model by
                default
        """
        return self._maker.rows(samples, self.law, self.estimate.value if theta is None else theta)

    def noise_grams(self, samples: Samples) -> Array:
        """The contribution of acceleration noise to the inner products of rows, (n, p, p)."""
        return self._maker.noise_grams(samples, len(self.estimate.value))

    def with_row_cache(self) -> DynamicModel:
        """The same model with a cache of the regressor columns of samples."""
        same = copy(self)
        object.__setattr__(same, "_maker", RowMaker(self.robot, self.basis))
        return same

    def torque(self, q: ArrayLike, v: ArrayLike, a: ArrayLike) -> Array:
        """The predicted torque of the drives along a motion in time order, (N, n) [Nm or N].

        Args:
            q: joint positions, (N, n) [rad or m]
            v: joint velocities, (N, n) [rad/s or m/s]
            a: joint accelerations, (N, n) [rad/s^2 or m/s^2]
        """
        motion = Samples(
            q=np.asarray(q),
            v=np.asarray(v),
            a=np.asarray(a),
            tau=np.zeros(np.shape(q)),
            rate_hz=1.0,
            joint_names=self.robot.joint_names,
            kinematics=self.kinematics,
        )
        return np.asarray(self.rows(motion).Y @ self.estimate.value)

    def __str__(self) -> str:
        return f"{self.robot.name}, friction law '{self.law.name}'. {self.verdict}"

    def __repr__(self) -> str:
        return f"<DynamicModel: {self}>"

    def _repr_html_(self) -> str | None:
        from steelyard.drawing import notebook_html

        estimate = self.estimate
        found = zip(estimate.parameters, estimate.names, estimate.value, estimate.std, strict=True)
        rows = [
            (self._joint_of(parameter), name, *rounded(value, NORMAL_95 * std), parameter.unit)
            for parameter, name, value, std in found
        ]
        headers = ("joint", "parameter", "value", "\u00b1 (95 %)", "unit")
        return notebook_html(headers, rows, words=str(self), plot=self.plot().plots[0])

    def to_dataframe(self, library: Library = "pandas") -> Any:
        """A table with the columns name, joint, value, std, half_width (95 %) and unit.

        Args:
            library: whose table: 'pandas', 'polars' or 'pyarrow'
        """
        parameters = self.estimate.parameters
        columns = {
            "name": list(self.estimate.names),
            "joint": [self._joint_of(each) for each in parameters],
            "value": self.estimate.value.tolist(),
            "std": self.estimate.std.tolist(),
            "half_width": (NORMAL_95 * self.estimate.std).tolist(),
            "unit": [each.unit for each in parameters],
        }
        return data_frame(columns, library)

    def _joint_of(self, parameter: Parameter) -> str:
        if parameter.kind is ParameterKind.TERM:
            return ""
        return self.robot.joint_names[parameter.joint]

    def plot(self, ax: Any = None) -> Picture:
        """Friction and offset of each joint against its speed, with 95 % intervals.

        Args:
            ax: axes of Matplotlib to draw the joints on, one or several; none by default
        """
        from steelyard.drawing import Band, Curve, Panel, Picture, Plot

        n = self.robot.n
        v_max = self.robot.limits.v_max
        share = np.linspace(-1.0, 1.0, _PLOTTED_SPEEDS)[:, None]
        v = share * np.where(np.isfinite(v_max), v_max, 1.0)
        q = np.cumsum(v, axis=0) / _PLOTTED_RATE_HZ
        none = np.zeros((_PLOTTED_SPEEDS, n))
        words = (self.robot.joint_names, self.kinematics)
        friction = self.estimate.parameters.friction_and_offsets
        Y = self.rows(Samples(q, v, none, none, _PLOTTED_RATE_HZ, *words)).Y[:, :, friction]
        torque = Y @ self.estimate.value[friction]
        covariance = self.estimate.covariance[np.ix_(friction, friction)]
        half = NORMAL_95 * np.sqrt(np.einsum("nji,ik,njk->nj", Y, covariance, Y))
        panels = []
        for j, name in enumerate(self.robot.joint_names):
            x = v[:, j]
            y = torque[:, j]
            width = half[:, j]
            region = Band("95 %", x, y - width, y + width)
            parts: list[Curve | Band] = [region, Curve("friction and offset", x, y)]
            panels.append(Panel(name, "speed [rad/s or m/s]", "torque [Nm or N]", parts))
        picture = Picture([Plot(f"Friction against speed, law '{self.law.name}'.", panels, 3)])
        if ax is not None:
            picture.draw(ax)
        return picture

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """The model in a JSON file that `save` wrote."""
        model = super().load(path)
        model._require_consistent(path)
        return model

    def _require_consistent(self, path: str | Path) -> None:
        """Raises an error if the saved residuals are not those of the saved parameters."""
        if self.estimate.parameters != self._maker.parameters(self.law):
            raise UnreadableFile(
                f"{path}: the parameters do not match the robot and the friction law in the file"
            )
        rms, least_rms = self._saved_residuals()
        saved_noise = self.estimate.noise
        measured = self.factor.rows.reshape(-1, self.robot.n).any(axis=0)
        too_large = saved_noise > _MAX_RESIDUAL_RATIO * rms + 1e-9
        too_small = least_rms > _MAX_RESIDUAL_RATIO * saved_noise + 1e-9
        inconsistent = measured & (too_large | too_small)
        if inconsistent.any():
            j = int(inconsistent.argmax())
            raise UnreadableFile(
                f"{path}: the parameters leave an RMS residual of {rms[j]:.3g} at"
                f" {self.robot.joint_names[j]}, but the file states {saved_noise[j]:.3g}: it was"
                " edited; identify the arm again"
            )

    def _saved_residuals(self) -> tuple[Array, Array]:
        """RMS residuals with the same friction in all runs, and with friction of each, (n,) each.

        The noise of a model of several runs lies between both, see `_run_effects`.
        """
        n = self.robot.n
        left = self.factor.R @ np.append(self.estimate.value, -1.0)
        own = self.factor.R[:, :, :-1][:, :, self.estimate.parameters.daily]
        explained = own @ (np.linalg.pinv(own) @ left[:, :, None])
        counts = np.maximum(self.factor.rows.reshape(-1, n).sum(axis=0), 1)
        squares = [(left**2).sum(axis=1), ((left - explained[:, :, 0]) ** 2).sum(axis=1)]
        same, each = (np.sqrt(part.reshape(-1, n).sum(axis=0) / counts) for part in squares)
        return same, each

    @property
    def covariance_of_other_runs(self) -> Array:
        """Covariance of the parameters of a run that was not fitted, (p, p).

        Its friction is one more draw from the population of the fitted runs. Infinite on the
        diagonal where nothing is known.
        """
        covariance = self.estimate.covariance.copy()
        if self.run_spread is None:
            daily = self.estimate.parameters.daily
            covariance[daily, daily] = np.inf
            return covariance
        estimated = np.diag(covariance) > 0  # not set
        variance = np.where(estimated, self.run_spread**2 * (1 + 1 / self.runs), 0.0)
        covariance[np.diag_indices_from(covariance)] += variance
        return covariance

    @property
    def runs(self) -> int:
        """Number of runs that it was fitted to."""
        if self.merged_runs is not None:
            return self.merged_runs
        return max(len(self.factor.rows) // self.robot.n, 1)

    @cached_property
    def gain_response(self) -> Array:
        """How the parameters change with the logarithm of each drive's gain, (p, n)."""
        return solve_weighted(self.factor).gain_response(self.factor, self.robot.n)

    def require_compatible(self, samples: Samples) -> None:
        """Raises an error for samples of other joints, kinematics or torque sources."""
        require_same_joints(self.robot, samples)
        if samples.kinematics != self.kinematics:
            raise InvalidSamples(
                f"the model was fitted to {self.kinematics} motion, these samples hold"
                f" {samples.kinematics} motion"
            )
        if (samples.gain is not None) != self.from_currents:
            here = _TORQUE_SOURCE[self.from_currents]
            there = _TORQUE_SOURCE[not self.from_currents]
            raise InvalidSamples(
                f"the model was fitted to {here}, these samples hold {there}: use samples of the"
                " same kind"
            )
        gain = self.robot.drive.gain
        if samples.gain is not None and gain is not None and not np.allclose(samples.gain, gain):
            raise InvalidSamples(
                f"the model was fitted with gains {np.round(gain, 3)} Nm/A, these torques were"
                f" converted with {np.round(samples.gain, 3)} Nm/A: prepare both with the same"
                " gains"
            )

    def preparation_doubt(self, samples: Samples) -> Doubt | None:
        """A doubt if samples were prepared differently from those that the model was fitted to."""
        mine = self.preparation
        theirs = samples.preparation
        if mine is None or theirs is None:
            return None
        here = vars(mine)
        there = vars(theirs)
        names = [name for name in _RELEVANT_SETTINGS if here[name] != there[name]]
        differ = [f"{name} {there[name]} instead of {here[name]}" for name in names]
        if not differ:
            return None
        words = (
            f"the samples were prepared differently from those of the model: {', '.join(differ)}"
        )
        return Doubt(DoubtKind.PREPARED_OTHERWISE, words, blocks=False)

    def validate(self, samples: Samples) -> Validation:
        """How well the model predicts the torques of samples, including those at rest.

        Args:
            samples: in the order of time, preferably of a recording that was not fitted
        """
        require_same_joints(self.robot, samples)
        return validation_of(samples.tau, self.rows(samples).Y @ self.estimate.value)

    def prediction_doubt(self, samples: Samples, name: str) -> Doubt | None:
        """A doubt if the model does not predict a run that it was not fitted to.

        Args:
            samples: of the run
            name: of the run, for the message
        """
        unseen = self.validate(samples).relative
        n = self.robot.n
        residuals = self.factor.squared_residuals(self.estimate.value).reshape(-1, n).sum(axis=0)
        torques = (self.factor.R[:, :, -1] ** 2).sum(axis=1).reshape(-1, n).sum(axis=0)
        fitted = np.sqrt(residuals / np.maximum(torques, 1e-300))
        if prediction_error(unseen, fitted) <= _MAX_VALIDATION_ERROR:
            return None
        words = (
            f"the model does not predict {name}: torques are off by {100 * unseen.mean():.0f} %"
            f" (mean over the joints), where the fit leaves {100 * fitted.mean():.0f} %; record"
            " more motion, faster and wider, or check that both recordings are of the same arm"
        )
        return Doubt(DoubtKind.DOES_NOT_PREDICT, words)

    def feasible_arm(self, bounds: ParameterBounds | None = None) -> FeasibleArm:
        """The arm of real bodies within bounds that explains the data of the model best."""
        from steelyard.identification._feasible import feasible_parameters

        weights = solve_weighted(self.factor).weights
        return feasible_parameters(
            self.robot, self.basis, self.factor.weighted(weights), bounds=bounds
        )

    def friction_torque(self, samples: Samples) -> tuple[Array, Array]:
        """Friction and offset, measured (torque less links and rotors) and modelled, (N, n) each.

        Args:
            samples: in the order of time
        """
        rows = self.rows(samples)
        rest = self.estimate.parameters.friction_and_offsets
        rigid = rows.Y[:, :, ~rest] @ self.estimate.value[~rest]
        return rows.tau - rigid, np.asarray(rows.Y[:, :, rest] @ self.estimate.value[rest])
