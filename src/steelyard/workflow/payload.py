"""The payload from recordings of the loaded arm, prepared as those of the model were."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from steelyard.computing import one_blas_thread
from steelyard.errors import SteelyardError
from steelyard.identification import DynamicModel
from steelyard.payload import Payload
from steelyard.recording import Preparation
from steelyard.torque import weigh as weigh_samples
from steelyard.torque.methods import METHODS
from steelyard.workflow.data import Data, Run, preparation_for, qualities, runs_of

if TYPE_CHECKING:
    from steelyard.inertia import InertialParameters
    from steelyard.report import Page

ALL_METHODS = "all"


@dataclass(frozen=True, eq=False)
class Weighing:
    """A payload with what it was weighed from.

    Attributes:
        model: of the empty arm
        payload: the answer
        runs: of the loaded arm
        methods: the answer of each method, or why it has none; empty unless all were asked for
    """

    model: DynamicModel
    payload: Payload
    runs: tuple[Run, ...]
    methods: Mapping[str, Payload | str] = field(default_factory=dict)

    @classmethod
    @one_blas_thread()
    def of(
        cls,
        model: DynamicModel | str | Path,
        data: Data,
        *,
        method: str = "direct",
        fixed: Mapping[str, float] | None = None,
        empty: Data = (),
        tool: Payload | None = None,
        preparation: Preparation | None = None,
    ) -> Weighing:
        """What the arm carries, with the runs that it was weighed from; see `weigh`.

        Args:
            model: of the empty arm, or its file
            data: of the loaded arm
            method: of weighing; 'all' for each beside the direct one
            fixed: numbers that are known
            empty: runs of the empty arm
            tool: that the arm carried when its model was identified
            preparation: how recordings become samples
        """
        arm = model if isinstance(model, DynamicModel) else DynamicModel.load(model)
        how = preparation_for(arm, preparation)
        problem = _Problem(
            arm,
            how,
            _prepared(arm, data, how),
            _prepared(arm, empty, how),
            dict(fixed or {}),
        )
        payload = problem.answer("direct" if method == ALL_METHODS else method)
        methods = problem.answers() if method == ALL_METHODS else {}
        if tool is not None:
            payload = payload.together_with(tool)
        doubts = (doubt for run in problem.loaded for doubt in run.doubts)
        payload = replace(payload, verdict=payload.verdict.doubted(*doubts))
        return cls(arm, payload, problem.loaded, methods)

    def page(self, *, truth: InertialParameters | None = None) -> Page:
        """The page that shows and explains it.

        Args:
            truth: the payload, where it is known
        """
        from steelyard.report.payload import payload_page

        page = payload_page(
            self.model,
            self.payload,
            self.runs[0].ready,
            truth=truth,
            others={name: answer for name, answer in self.methods.items() if not isinstance(answer, str)},
        )
        return page.with_quality(qualities(self.runs, self.model.robot))


def weigh(
    model: DynamicModel | str | Path,
    data: Data,
    *,
    method: str = "direct",
    fixed: Mapping[str, float] | None = None,
    empty: Data = (),
    tool: Payload | None = None,
    preparation: Preparation | None = None,
) -> Payload:
    """What the arm carries, beyond what it carried when the model was identified.

    Args:
        model: of the empty arm, or its file
        data: of the loaded arm: files, recordings, samples or tables; one or several
        method: a name of `steelyard.torque.methods.METHODS`
        fixed: numbers that are known, by name of `PARAMETER_NAMES` [SI], say {"mass": 2.8}; cx, cy, cz for
            the centre of mass [m]; 'inertia' for all six, about the flange's origin
        empty: runs of the empty arm, for the methods that need them ('torque-change' on the same motions,
            'pooled' on any)
        tool: that the arm carried when its model was identified: the answer is then both together
        preparation: how recordings become samples; as those of the model were, by default
    """
    return Weighing.of(
        model, data, method=method, fixed=fixed, empty=empty, tool=tool, preparation=preparation
    ).payload


def _prepared(model: DynamicModel, data: Data, how: Preparation) -> tuple[Run, ...]:
    runs = runs_of(data, model.robot, how=how)
    return tuple(run.prepared(how, run.drive_for(model), model.robot.limits) for run in runs)


@dataclass(frozen=True, eq=False)
class _Problem:
    """Runs to weigh from, whatever the method."""

    model: DynamicModel
    how: Preparation
    loaded: tuple[Run, ...]
    empty: tuple[Run, ...]
    fixed: Mapping[str, float]

    def answer(self, method: str) -> Payload:
        """The payload by one method."""
        runs = self.empty
        if method == "manufacturer":
            runs = tuple(run.of_controller().prepared(self.how, None) for run in self.loaded)
        samples, empty = ([run.ready for run in each] for each in (self.loaded, runs))
        return weigh_samples(self.model, samples, method=method, fixed=self.fixed, empty=empty or None)

    def answers(self) -> dict[str, Payload | str]:
        """The payload by each method, or why it has none."""
        found: dict[str, Payload | str] = {}
        for name in METHODS:
            try:
                found[name] = self.answer(name)
            except SteelyardError as error:
                found[name] = str(error)
        return found
