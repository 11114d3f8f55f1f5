"""`steelyard identify ROBOT RECORDING... -o MODEL`: a model of the empty arm."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import numpy as np
import typer

from steelyard import _saved
from steelyard._units import NORMAL_95, with_interval
from steelyard.cli import options
from steelyard.cli.output import Output, number
from steelyard.cli.terminal import say
from steelyard.errors import InvalidSamples, SteelyardError, UnreadableFile
from steelyard.robot import ParameterKind

if TYPE_CHECKING:
    from steelyard.identification._feasible import FeasibleArm
    from steelyard.identification._feasible_space import ParameterBounds
    from steelyard.identification._fit import FitMethod
    from steelyard.recording import Preparation, Recording
    from steelyard.workflow._arm import Identification


_NAMED = 5  # weak parameters that are named
_MAX_ORDER = 12  # of a filter; higher ones are numerically unstable


def command(
    ctx: typer.Context,
    robot: options.RobotArgument,
    recordings: Annotated[list[Path], typer.Argument(help="Recordings of the empty arm.")],
    output: Annotated[
        Path,
        options.file_to_write("The model to write (.json).", "--output", "-o", endings=(".json",)),
    ],
    validate: Annotated[
        list[Path] | None,
        typer.Option(
            help="A recording that is predicted, and not used for the fit. May be repeated."
        ),
    ] = None,
    friction: Annotated[
        str,
        typer.Option(
            help="Friction law: auto (chosen by prediction), linear, band, power, smooth,"
            " smooth-power, stribeck, load, presliding, presliding-power or presliding-load; each"
            " also with -asymmetric, for friction that differs by direction (load-asymmetric)."
        ),
    ] = "auto",
    gains: Annotated[
        str,
        typer.Option(
            help="Drive gains [Nm/A]: auto, robot, targets (of the controller), k1,k2,..., "
            "or mass=KG:FILE (a run with a known payload)."
        ),
    ] = "auto",
    lag: Annotated[
        str,
        typer.Option(
            help="Time by which torques are later than the motion [s]. auto finds it, and uses it"
            " where it predicts better."
        ),
    ] = "auto",
    cutoff: Annotated[
        str,
        typer.Option(help="Cut-off of the filter on the motion [Hz], or auto."),
    ] = "auto",
    torque_cutoff: Annotated[
        float | None,
        typer.Option(
            min=options.LOWEST_HZ,
            help="Cut-off of a filter on the torques [Hz]. Default: no filter; it blurs friction.",
        ),
    ] = None,
    order: Annotated[
        int, typer.Option(min=1, max=_MAX_ORDER, help="Order of both filters (Butterworth).")
    ] = 4,
    kinematics: Annotated[
        str, typer.Option(help="The motion to fit: measured or commanded.")
    ] = "measured",
    fourier: Annotated[
        str | None,
        typer.Option(
            metavar="PERIOD[,HARMONICS]",
            help="Differentiate a Fourier series fitted to the positions [s], with 5 harmonics by"
            " default.",
        ),
    ] = None,
    lowest_speed: Annotated[
        float, typer.Option(min=0.0, help="Ignore torques of joints slower than this [rad/s].")
    ] = 0.01,
    method: Annotated[
        str, typer.Option(help="Fit: weighted (by the noise of each joint), ordinary or huber.")
    ] = "weighted",
    offsets: Annotated[
        bool,
        typer.Option(
            "--offsets/--no-offsets", help="Fit a constant offset of the torque of each joint."
        ),
    ] = True,
    mean_of_runs: Annotated[
        bool,
        typer.Option(
            "--mean-of-runs",
            help="Solve each recording alone and take the mean of the parameters. Default: all"
            " recordings together.",
        ),
    ] = False,
    feasible: Annotated[
        bool,
        typer.Option("--feasible", help="Also find the nearest physical parameters."),
    ] = False,
    bounds: Annotated[
        Path | None,
        typer.Option(
            help="As --feasible, with bounds from a TOML file: m1 = [0, 5], cx1 = [-1, 0], ..."
        ),
    ] = None,
    urdf: Annotated[
        Path | None, options.file_to_write("Write the physical parameters as URDF.")
    ] = None,
    picture: options.PictureOption = None,
    report: options.ReportOption = None,
    serial: Annotated[
        str,
        typer.Option(
            help="Serial number of the arm, where the recordings have none.", show_default=False
        ),
    ] = "",
    lock: options.LockOption = None,
    flange: options.FlangeOption = None,
    gravity: options.GravityOption = None,
    column: options.ColumnOption = None,
    joints: options.JointsOption = None,
    names: options.NamesOption = None,
    rate: options.RateOption = None,
    degrees: options.DegreesFlag = False,
    trust: options.TrustOption = "",
    as_json: options.JsonFlag = False,
) -> None:
    """Identifies the empty arm: base parameters and friction.

    Exit code 1 when the motion does not determine all parameters, or when much of the torque of a
    joint stays unexplained.
    """
    from steelyard.workflow._arm import Identification, require_solvable_again, with_lag

    fit = cast("FitMethod", method)
    if mean_of_runs or not offsets:
        require_solvable_again(fit, mean_of_runs=mean_of_runs, runs=len(recordings))
    if bounds is None:
        known = None
    else:
        known = _bounds(bounds)
    out = Output(as_json)
    arm = options.load_arm(robot, lock, flange, gravity).with_serial(serial)
    asked = options.requested(column, joints, degrees=degrees, names=names, rate=rate, trust=trust)
    read = partial(options.read_requested, asked=asked, robot=arm)
    preparation = replace(
        _preparation(cutoff, torque_cutoff, kinematics, fourier, lowest_speed), order=order
    )
    with out.progress(f"identifying {arm.name}") as done:
        found = Identification.of(
            arm,
            options.read_all(recordings, read),
            validate=options.read_all(validate, read),
            friction=friction,
            gains=_gains(gains, read),
            preparation=with_lag(preparation, _lag(lag), arm.n),
            method=fit,
            progress=done,
        )
    if mean_of_runs or not offsets:
        found = found.solved_again(offsets=offsets, mean_of_runs=mean_of_runs, method=fit)
    model = found.model
    if feasible or bounds is not None or urdf is not None:
        bodies = model.feasible_arm(known)
    else:
        bodies = None
    read_files: list[str | Path] = [robot, *recordings, *(validate or []), gains.partition(":")[2]]
    with _saved.together():
        model.save(output)
        if urdf is not None:
            from steelyard.io._arms import arm_for_export
            from steelyard.io._urdf import write_urdf

            write_urdf(arm_for_export(model).robot, urdf)
        out.report(ctx, lambda: found.page(bodies), read_files, report=report, picture=picture)
    summary = _Summary(found, bodies)
    facts = {"model": output, **summary.facts(), "report": report}
    files = {"Model": output, "Report": report}
    again = options.repeated(ctx, "column", "joints", "names", "rate", "degrees", "trust")
    then = f"steelyard weigh {output} LOADED{again} -o payload.json --report page.html"
    out.emit(facts, lambda: summary.show(out), files=files, verdict=model.verdict, then=then)


def _gains(wanted: str, read: Callable[[Path], Recording]) -> Any:
    """Where gains come from, as `Identification.of` takes it."""
    from steelyard.workflow._arm import KnownMass

    if wanted in ("auto", "robot", "targets"):
        return wanted
    try:
        if not wanted.startswith("mass="):
            return [float(x) for x in wanted.split(",")]
        mass, _, file = wanted.removeprefix("mass=").partition(":")
        if not file:
            raise InvalidSamples(
                f"--gains mass=KG:FILE needs a mass and a loaded recording; got '{wanted}'"
            )
        return KnownMass(float(mass), read(Path(file)))
    except SteelyardError:
        raise
    except ValueError:
        raise InvalidSamples(
            f"--gains is auto, robot, targets, numbers with commas, or mass=KG:FILE; got '{wanted}'"
        ) from None


def _lag(wanted: str) -> Any:
    """The lag as `with_lag` takes it."""
    if wanted == "auto":
        return wanted
    try:
        return float(wanted)
    except ValueError:
        raise InvalidSamples(f"--lag is a number [s] or auto; got '{wanted}'") from None


def _bounds(path: Path) -> ParameterBounds:
    """The bounds in a TOML file: a pair of numbers for each name."""
    from steelyard.identification._feasible_space import ParameterBounds

    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
        return ParameterBounds(
            {name: (float(low), float(high)) for name, (low, high) in content.items()}
        )
    except SteelyardError:
        raise
    except (OSError, ValueError, TypeError) as error:
        raise UnreadableFile(
            f"{path}: bounds are NAME = [LOW, HIGH], one per line; {error}"
        ) from None


def _preparation(
    cutoff: str,
    torque_cutoff: float | None,
    kinematics: str,
    fourier: str | None,
    lowest_speed: float,
) -> Preparation:
    from steelyard.recording import Preparation

    motion: Any = kinematics
    how = Preparation(torque_cutoff_hz=torque_cutoff, kinematics=motion, lowest_speed=lowest_speed)
    if fourier is not None:
        rule = "--fourier is PERIOD [s] or PERIOD,HARMONICS, say 10,5"
        period_s, harmonics, *more = [*options.numbers(fourier, rule), 5.0]
        if not period_s > 0 or harmonics < 1 or harmonics % 1 or len(more) > 1:
            raise InvalidSamples(f"{rule}; got '{fourier}'")
        how = replace(how, fourier_period_s=period_s, fourier_harmonics=int(harmonics))
    try:
        if cutoff == "auto":
            return how
        if not float(cutoff) >= options.LOWEST_HZ:
            raise ValueError
        return replace(how, cutoff_hz=float(cutoff))
    except ValueError:
        raise InvalidSamples(f"--cutoff is a number [Hz] or auto; got '{cutoff}'") from None


class _Summary:
    """An identified arm at a glance, for programs and for people."""

    def __init__(self, found: Identification, bodies: FeasibleArm | None) -> None:
        self.found = found
        self.model = found.model
        self.bodies = bodies
        self.checks = found.validations

    def facts(self) -> dict[str, Any]:
        """Everything, for programs."""
        estimate = self.model.estimate
        model = self.model
        return {
            "base_parameters": len(model.basis),
            "parameters": dict(zip(estimate.names, estimate.value.tolist(), strict=True)),
            "std": dict(zip(estimate.names, estimate.std.tolist(), strict=True)),
            "weak": list(estimate.weak()),
            "friction": model.law.name,
            "friction_scores": None if model.choice is None else model.choice.scores,
            "shapes": {name: getattr(model.law, name) for name in model.law.free_shapes},
            "alpha": model.law.exponent,
            "gains": model.robot.drive.gain if model.from_currents else None,
            "gains_from": self.found.gains_from,
            "alike_arms": list(self.found.alike_arms),
            "gains_verdict": None
            if self.found.gains is None
            else self.found.gains.verdict.to_dict(),
            "lag_s": model.lag,
            "lag_std_s": model.lag_std,
            "condition": estimate.condition,
            "made_from": list(model.made_from),
            "noise": estimate.noise,
            "run_spread": None
            if model.run_spread is None
            else dict(zip(estimate.names, model.run_spread.tolist(), strict=True)),
            "recordings": {
                path: {"rms": v.rms, "relative": v.relative, "correlation": v.correlation}
                for path, v in self.checks.items()
            },
            "feasible": None
            if self.bodies is None
            else {"rms_ratio": self.bodies.rms_ratio, "status": self.bodies.status},
            "verdict": estimate.verdict.to_dict(),
        }

    def show(self, output: Output) -> None:
        """The same at a glance, for people."""
        model = self.model
        output.verdict(model.verdict, before=f"{model.robot.name}: ")
        law = model.law.name
        if model.choice is not None:
            law += f", chosen by predicting {model.choice.folds}"
        say(f"Friction law: {law}.")
        if model.choice is not None:
            scores = model.choice.scores.items()
            errors = ", ".join(f"{name} {100 * score:.1f} %" for name, score in scores)
            say(f"Errors of the predictions: {errors}.")
        say(model.run_spread_sentence)
        say(f"Drives: {self.found.gains_from}.")
        say(model.lag_sentence)
        if self.found.alike_sentence:
            say(self.found.alike_sentence)
        say()
        title = "Relative residual of the torque of each joint [%]"
        output.table(title, ("", *self._recordings()), self._residuals())
        say()
        names = ("", "Fc [Nm]", "Fv [Nm (s/rad)^alpha]", "alpha", "noise [Nm]")
        output.table("Friction of each joint (95 % intervals)", names, self._drives())
        if self.bodies is not None:
            say(f"\nReal bodies: {self.bodies.status}")
        say(f"\n{self._weak()}")

    def _weak(self) -> str:
        """How many parameters are weak, and the worst of them by name."""
        estimate = self.model.estimate
        weak = estimate.weak()
        words = f"{len(weak)} of {len(estimate.names)} parameters are weak (std above 30 %)"
        if not weak:
            return f"{words}."
        relative = dict(zip(estimate.names, estimate.relative_std, strict=True))
        worst = sorted(weak, key=lambda name: -relative[name])
        if len(worst) > _NAMED:
            more = f" and {len(worst) - _NAMED} more"
        else:
            more = ""
        return f"{words}: {', '.join(worst[:_NAMED])}{more}."

    def _recordings(self) -> Iterator[str]:
        """Name and role of each recording."""
        for i, path in enumerate(self.checks):
            if i < len(self.found.fitted):
                role = "fitted"
            else:
                role = "predicted"
            file, piece, numbers = path.partition(", rows ")
            yield f"{Path(file).name + piece + numbers} {role}"

    def _residuals(self) -> list[tuple[str, ...]]:
        """A row for each joint, and one for their mean, with a cell for each recording [%]."""
        shares = np.array([100 * check.relative for check in self.checks.values()]).T
        rows = [
            *zip(self.model.robot.joint_names, shares, strict=True),
            ("mean", shares.mean(axis=0)),
        ]
        return [(name, *(f"{x:.1f}" for x in cells)) for name, cells in rows]

    def _drives(self) -> list[tuple[str, ...]]:
        estimate = self.model.estimate
        law = self.model.law
        kinds = (ParameterKind.COULOMB, ParameterKind.VISCOUS)
        by_joint = partial(estimate.parameters.of_kinds_by_joint, kinds=kinds, n=self.model.robot.n)
        values = by_joint(estimate.value)
        half_widths = by_joint(NORMAL_95 * estimate.std)
        rows = []
        for j, joint in enumerate(self.model.robot.joint_names):
            intervals = map(with_interval, values[:, j], half_widths[:, j])
            rows.append(
                (joint, *intervals, number(law.exponent[j], 3), number(estimate.noise[j], 3))
            )
        return rows
