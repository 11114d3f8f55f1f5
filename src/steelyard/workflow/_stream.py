"""A recording weighed sample by sample, as on the running arm, with the curve of how it became known."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import numpy as np

from steelyard import fields, saved
from steelyard._computing import one_blas_thread
from steelyard.drawing import notebook_html
from steelyard.errors import InvalidRecording, InvalidSamples, UnknownName
from steelyard.identification import DynamicModel
from steelyard.identification._temperature import with_temperature_drift
from steelyard.payload import Payload
from steelyard.payload._tracking import Progress, Tracker, convergence_times
from steelyard.quality import check
from steelyard.recording import Preparation
from steelyard.signals import JointPath, replay
from steelyard.torque.tracking import TorqueTracker, TorqueTrackerOptions, TorqueTrackerState
from steelyard.verdict import Doubt, DoubtKind
from steelyard.workflow._data import Data, Run, preparation_for, qualities, runs_of, temperature_of
from steelyard.wrist.tracking._state import WristTrackerState

if TYPE_CHECKING:
    from steelyard.report import Page

OnPoint: TypeAlias = Callable[[Progress], None]
S = TypeVar("S", TorqueTrackerState, WristTrackerState)
X = TypeVar("X", contravariant=True)

RESUME_S = 1.0
"""A resumed clock goes on so much after the saved one, [s]."""

_DIRECT = "direct"
_POINT_S = 0.1
_MOST_POINTS = 600
_DAY_S = 86_400.0
_STATE_VERSION = 9


@dataclass(frozen=True, eq=False, kw_only=True)
class OnlineCurve:
    """A payload that was weighed sample by sample, and how it became known.

    Attributes:
        payload: what to save
        state: of the estimator at the end
        points: the answer along the way
        accuracy: half-width of the mass's 95 % interval over the mass at which it has converged
        delay_s: how late a sample comes, for the filter, [s]
    """

    payload: Payload
    state: TorqueTrackerState | WristTrackerState
    points: tuple[Progress, ...]
    accuracy: float
    delay_s: float

    @property
    def converged_s(self) -> dict[int, float]:
        """Since when each payload was known to the requested accuracy, [s], payloads counted from 1."""
        return convergence_times(self.points)

    @property
    def when(self) -> str:
        """Since when the payload was known to the requested accuracy, and how late samples come."""
        asked = f"{100 * self.accuracy:g} %"
        late_s = f"{self.delay_s:.2f} s"
        since_s = self.converged_s.get(len(self.state.history) + 1)
        if since_s is not None:
            known = f"is known to {asked} since {since_s:.1f} s"
        else:
            known = ""
        known = known or f"did not become known to {asked}"
        return f"The mass {known}; samples come {late_s} after their instant, for the filter."

    def __str__(self) -> str:
        return f"{self.payload} {self.when}"

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self}>"

    def _repr_html_(self) -> str:
        from steelyard.report._tracking import tracking_plot

        headers = ("", "weighed", "\u00b1 (95 %)", "unit")
        cells = [x.cells for x in self.payload.quantities]
        words = f"{self.payload.verdict} {self.when}"
        return notebook_html(
            headers, cells, words=words, plot=tracking_plot(self.points, accuracy=self.accuracy)
        )

    def to_dict(self) -> dict[str, Any]:
        """The payload at the end, those before it, and the curve, as texts, numbers and arrays."""
        since_s = self.converged_s
        history = self.state.history
        points = [point for point in self.points if np.isfinite(point.mass_std)]
        names = ("t", "mass", "mass_std", "com", "com_std", "number", "converged")
        return {
            **self.payload.to_dict(),
            "converged_s": since_s.get(len(history) + 1),
            "accuracy": self.accuracy,
            "delay_s": self.delay_s,
            "samples": self.state.counts._asdict(),
            "history": [
                {
                    "start_s": episode.start_s,
                    "end_s": episode.end_s,
                    "mass": episode.vector[0],
                    "mass_std": np.sqrt(episode.covariance[0, 0]),
                    "vector": episode.vector,
                    "converged_s": since_s.get(k),
                }
                for k, episode in enumerate(history, start=1)
            ],
            "curve": {name: [getattr(point, name) for point in points] for name in names},
        }


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class OnlineWeighing(OnlineCurve):
    """The same by joint torques; `save_state` to go on later."""

    model: DynamicModel
    run: Run
    state: TorqueTrackerState

    def save_state(self, path: str | Path) -> None:
        """Writes the state of the estimator to a JSON file, to go on from later."""
        if not isinstance(self.state, TorqueTrackerState):
            raise InvalidSamples(f"only '{_DIRECT}' saves its state")
        content = {"model": _fingerprint(self.model), "state": self.state.to_dict()}
        saved.save(content, "online state", path, version=_STATE_VERSION, sealed=True)

    def page(self) -> Page:
        """The page that shows and explains it, with the curve of how it became known."""
        from steelyard.report import Section
        from steelyard.report._payload import payload_page
        from steelyard.report._tracking import tracking_plot

        how = preparation_for(self.model, None)
        drive = self.run.drive_for(self.model)
        plot = tracking_plot(self.points, accuracy=self.accuracy)
        curve = Section("How the answer became known", (), [plot])
        samples = self.run.prepared(how, drive).ready
        page = payload_page(self.model, self.payload, samples, extra=[curve])
        return replace(page.with_quality(qualities([self.run], self.model.robot)), picture=[plot])


@one_blas_thread()
def weigh_online(
    model: DynamicModel | str | Path,
    data: Data,
    *,
    accuracy: float = 0.01,
    resume: str | Path | None = None,
    preparation: Preparation | None = None,
    estimator: str = _DIRECT,
    real_time: bool = False,
    on_point: OnPoint | None = None,
) -> OnlineWeighing:
    """What the arm carries, sample by sample, beyond what it carried when the model was identified.

    Args:
        model: of the empty arm, or its file
        data: of the loaded arm: a file, a recording, samples or a table
        accuracy: half-width of the mass's 95 % interval over the mass at which it has converged
        resume: a file that `save_state` wrote, to go on from
        preparation: how rows become samples; as those of the model were, by default
        estimator: 'direct', ours, or the name of one that another package plugs in, say 'xu2024'
        real_time: not faster than the recording's clock
        on_point: called with each point of the curve as it becomes known
    """
    if isinstance(model, DynamicModel):
        arm = model
    else:
        arm = DynamicModel.load(model)
    runs = runs_of(data, arm.robot)
    if len(runs) != 1:
        raise InvalidSamples(f"one recording is replayed at a time, got {len(runs)}")
    (run,) = runs
    arm, doubts = with_temperature_drift(arm, temperature_of(runs))
    doubts += _quality(run, arm)
    weigher = _estimator(estimator, arm, accuracy)
    if resume is not None and estimator != _DIRECT:
        raise InvalidSamples(f"{estimator} does not resume: only {_DIRECT} saves its state")
    if resume is None:
        state = weigher.init()
    else:
        state = _load_state(resume, arm)
    how = replace(preparation_for(arm, preparation), trim_s=0.0, decimate=1)
    source = run.recording if run.recording is not None else run.ready
    if real_time:
        sleep = time.sleep
    else:
        sleep = None
    v_max = arm.robot.limits.v_max
    samples = replay(source, how, drive=run.drive_for(arm), v_max=v_max, sleep=sleep)
    if np.isfinite(state.last_s):
        later_s = state.last_s + RESUME_S
        samples = (sample._replace(t=sample.t + later_s) for sample in samples)
    delay_s = duration_s = 0.0
    if run.recording is not None:
        delay_s = JointPath.of(run.recording, how).delay_s
        duration_s = run.recording.duration_s
    state, points = replayed(weigher, state, samples, duration_s, on_point)
    payload = weigher.estimate(state)
    payload = replace(payload, verdict=payload.verdict.doubted(*doubts))
    return OnlineWeighing(
        model=arm,
        payload=payload,
        run=run,
        state=state,
        points=points,
        accuracy=accuracy,
        delay_s=delay_s,
    )


def _estimator(name: str, model: DynamicModel, accuracy: float) -> Any:
    """The online estimator of a name: ours, or one of another package, which makes it of a model."""
    if name == _DIRECT:
        return TorqueTracker(
            model, model.kinematics, options=TorqueTrackerOptions(accuracy=accuracy)
        )
    others = {entry.name: entry for entry in entry_points(group="steelyard.estimators")}
    if name not in others:
        known = ", ".join([_DIRECT, *others])
        if others:
            more = ""
        else:
            more = "; those of papers are in a package of their own: pip install ./papers"
        raise UnknownName(f"no online estimator '{name}'; there are {known}{more}")
    return others[name].load()(model, accuracy)


def _load_state(path: str | Path, model: DynamicModel) -> TorqueTrackerState:
    """The state of an online estimate that `OnlineWeighing.save_state` wrote, with this model."""
    content = saved.load(path, "online state", version=_STATE_VERSION, sealed=True)
    with saved.reading(path, "online state"):
        fields.check(content, {"model": fields.TEXT, "state": fields.named(fields.anything)})
    if content["model"] != _fingerprint(model):
        raise InvalidSamples(f"{path} was saved with another model; start without it")
    with saved.reading(path, "online state"):
        fresh = TorqueTracker(model, model.kinematics).init()
        fields.require_like(content["state"], fresh.to_dict(), "state")
        state = TorqueTrackerState.from_dict(content["state"])
    if state.last_s > time.time() + _DAY_S:
        raise InvalidSamples(f"{path} ends in the future ({state.last_s:.4g} s); start without it")
    return state


def replayed(
    estimator: Tracker[S, X],
    state: S,
    samples: Iterator[X],
    duration_s: float,
    on_point: OnPoint | None,
) -> tuple[S, tuple[Progress, ...]]:
    """The state after all samples, and points along the way.

    Args:
        duration_s: of the recording, [s], by which points are spaced
        on_point: called with each point as it becomes known
    """
    spacing_s = max(_POINT_S, duration_s / _MOST_POINTS)
    points: list[Progress] = []

    def note() -> None:
        points.append(estimator.progress(state))
        if on_point is not None:
            on_point(points[-1])

    due_s = -np.inf
    for sample in samples:
        state = estimator.step(state, sample)
        if state.last_s >= due_s:
            note()
            due_s = max(due_s + spacing_s, state.last_s + spacing_s / 2)
    if not points:
        raise InvalidRecording(
            "the recording is too short to replay: no sample came out of the filters"
        )
    if state.last_s > points[-1].t:
        note()
    return state, tuple(points)


def _quality(run: Run, model: DynamicModel) -> tuple[Doubt, ...]:
    """What is wrong with a recording and yet does not forbid to replay it; else a refusal."""
    if run.recording is None:
        return run.doubts
    drive = run.drive_for(model)
    if drive is None:
        gain = None
    else:
        gain = drive.gain
    report = check(run.recording, limits=model.robot.limits, gain=gain)
    if not report.ok:
        raise InvalidRecording(
            f"{run.name}: the recording is not fit for use: {report.findings[0].sentence}"
        )
    return tuple(
        Doubt(DoubtKind.RECORDING, f"{run.name}: {x}", blocks=False) for x in report.warnings
    )


def _fingerprint(model: DynamicModel) -> str:
    """A short name of a model's numbers."""
    return hashlib.sha256(model.estimate.value.tobytes()).hexdigest()[:16]
