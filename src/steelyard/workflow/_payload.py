"""The payload from recordings of the loaded arm, prepared as those of the model were."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Sized
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from steelyard._computing import one_blas_thread
from steelyard.errors import SteelyardError, UnknownName
from steelyard.identification import DynamicModel
from steelyard.identification._temperature import with_temperature_drift
from steelyard.payload import Payload
from steelyard.recording import UNKNOWN_ARM, ArmIdentity, Preparation
from steelyard.torque import weigh as weigh_samples
from steelyard.torque._weigh import AUTOMATIC
from steelyard.torque.methods import METHODS
from steelyard.verdict import Doubt, DoubtKind
from steelyard.workflow._configured import configured_payload_doubts
from steelyard.workflow._data import (
    Data,
    Run,
    arm_words,
    identified_arm,
    preparation_for,
    qualities,
    require_motion,
    runs_of,
    short_names,
    temperature_of,
)

if TYPE_CHECKING:
    from steelyard.inertia import InertialParameters
    from steelyard.report import Page, Section

_ALL_METHODS = "all"
_METHODS_WITH_EMPTY_RUNS = (AUTOMATIC, "torque-change", "pooled", _ALL_METHODS)


@dataclass(frozen=True, eq=False)
class Weighing:
    """The steps of `weigh`, each computed when it is first needed."""

    model: DynamicModel
    data: Data
    method: str = AUTOMATIC
    fixed: Mapping[str, float] = field(default_factory=dict)
    empty: Data = ()
    tool: Payload | None = None
    preparation: Preparation | None = None

    def __post_init__(self) -> None:
        without_empty = isinstance(self.empty, Sized) and len(self.empty) == 0
        if without_empty or self.method not in METHODS:
            return
        if self.method not in _METHODS_WITH_EMPTY_RUNS:
            raise UnknownName(
                f"the method '{self.method}' needs no empty runs: leave `empty` out, or choose"
                f" `method` {' or '.join(_METHODS_WITH_EMPTY_RUNS[:-1])}"
            )

    @cached_property
    def runs(self) -> tuple[Run, ...]:
        """The runs of the loaded arm, with samples."""
        return self._prepared(self.data)

    @cached_property
    @one_blas_thread()
    def payload(self) -> Payload:
        """The weighed payload."""
        found = self._answer(AUTOMATIC if self.method == _ALL_METHODS else self.method)
        if self.tool is not None:
            found = found.together_with(self.tool)
        doubts = [
            *(doubt for run in self.runs for doubt in run.doubts),
            *self._arm[1],
            *self._other_arm_doubts,
            *self._configured_doubts(found),
        ]
        verdict = found.verdict.doubted(*doubts)
        return replace(found, verdict=verdict, arm=self._weighing_arm)

    @property
    def _weighing_arm(self) -> ArmIdentity:
        """The arm that carries the payload: that of the recordings, else that of the model."""
        arm = UNKNOWN_ARM
        for run in self.runs:
            arm = arm.completed(run.recorded_arm)
        return arm.completed(self.model.arm)

    @property
    def _other_arm_doubts(self) -> tuple[Doubt, ...]:
        """Doubts about recordings of another arm than the model's."""
        return tuple(
            Doubt(
                DoubtKind.OTHER_ROBOT,
                f"{run.name} was recorded on {run.recorded_arm}, the model is of {self.model.arm}",
            )
            for run in self.runs
            if run.recorded_arm.differs_from(self.model.arm)
        )

    def _configured_doubts(self, found: Payload) -> list[Doubt]:
        """Doubts if the controller was set to another payload."""
        beyond = "the empty arm"
        if self.tool is not None:
            beyond = ""
        recordings = [run.recording for run in self.runs]
        return configured_payload_doubts(recordings, found, beyond=beyond, method=found.method)

    @cached_property
    @one_blas_thread()
    def methods(self) -> dict[str, Payload | str]:
        """The answer of each method, or why it has none; empty unless all were requested."""
        found: dict[str, Payload | str] = {}
        for name in METHODS if self.method == _ALL_METHODS else ():
            try:
                found[name] = self._answer(name)
            except SteelyardError as error:
                found[name] = str(error)
        return found

    def page(
        self, *, truth: InertialParameters | None = None, extra: Sequence[Section] = ()
    ) -> Page:
        """The report on the payload.

        Args:
            truth: the true payload, if known, to compare with
            extra: further sections
        """
        from steelyard.report._payload import payload_page

        others = {
            name: answer for name, answer in self.methods.items() if not isinstance(answer, str)
        }
        samples = self.runs[0].ready
        page = payload_page(
            self.model, self.payload, samples, truth=truth, others=others, extra=extra
        )
        names = [short_names(self.runs)[run] for run in self.runs]
        drawn = ""
        if names[1:]:
            drawn = names[0]
        page = page.with_subject(arm_words(self.model.robot), names, drawn=drawn)
        return page.with_quality(qualities(self.runs, self.model.robot))

    @cached_property
    def _how(self) -> Preparation:
        return preparation_for(self.model, self.preparation)

    @cached_property
    def _arm(self) -> tuple[DynamicModel, tuple[Doubt, ...]]:
        return with_temperature_drift(self.model, temperature_of(self.runs))

    @cached_property
    def _empty_runs(self) -> tuple[Run, ...]:
        return self._prepared(self.empty)

    def _prepared(self, data: Data) -> tuple[Run, ...]:
        robot = self.model.robot
        runs = runs_of(data, robot, how=self._how)
        require_motion(runs, "determine a payload")
        return tuple(
            run.prepared(self._how, run.drive_for(self.model), robot.limits) for run in runs
        )

    def _answer(self, method: str) -> Payload:
        loaded = [run.ready for run in self.runs]
        if method == "manufacturer":
            how = replace(self._how, lag_s=None)  # the controller's torques have no lag
            empty = [run.of_controller().prepared(how, None).ready for run in self.runs]
        else:
            empty = [run.ready for run in self._empty_runs]
        return weigh_samples(
            self._arm[0], loaded, method=method, fixed=self.fixed, empty=empty or None
        )


def weigh(
    model: DynamicModel | str | Path,
    data: Data,
    *,
    method: str = AUTOMATIC,
    fixed: Mapping[str, float] | None = None,
    empty: Data = (),
    tool: Payload | None = None,
    preparation: Preparation | None = None,
) -> Payload:
    """The payload that the arm carries beyond its load during identification.

    Args:
        model: of the empty arm, or its file
        data: of the loaded arm: files, recordings, samples or tables; one or several
        method: a name of `steelyard.torque.methods.METHODS`, or 'auto': 'torque-change' if an
            empty run has the same motion and its interval of the mass is the narrower one, else
            'direct'
        fixed: known numbers by name of `PARAMETER_NAMES` [SI], such as {"mass": 2.8}; cx, cy, cz
            for the centre of mass [m]; 'inertia' for all six, about the flange's origin
        empty: runs of the empty arm ('auto' and 'torque-change' use those on the same motions,
            'pooled' uses any; other methods refuse them)
        tool: load of the arm during identification; the answer is then both together
        preparation: how recordings become samples; that of the model by default
    """
    found = Weighing(identified_arm(model), data, method, fixed or {}, empty, tool, preparation)
    return found.payload.with_page(found.page)
