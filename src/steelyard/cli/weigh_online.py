"""`steelyard weigh MODEL RECORDING --online`: the recording sample by sample, and the answer as it grows."""

from __future__ import annotations

import hashlib
import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import typer

from steelyard.cli.output import number, print_json, print_table
from steelyard.cli.recordings import read_wished
from steelyard.cli.reporting import qualities, run_settings, write_report
from steelyard.errors import InvalidRecording, InvalidSamples, UnreadableFile

if TYPE_CHECKING:
    from steelyard.identification import DynamicModel
    from steelyard.payload import Payload
    from steelyard.recording import Recording
    from steelyard.robot import DriveModel
    from steelyard.torque.online import OnlineEstimator, OnlineSample, OnlineState
    from steelyard.torque.online.curve import CurvePoint


_POINT_S = 0.1
_MOST_POINTS = 600
_RESUME_S = 1.0  # a resumed clock goes on so much after the saved one


@dataclass(frozen=True)
class OnlineWishes:
    """What else is wanted.

    Attributes:
        output: where the payload goes
        picture: where a picture of the curve goes
        cutoff_hz: of the filter on the motion, as for `identify`, [Hz]
        accuracy: half-width of the mass's 95 % interval over the mass at which it has converged
        report: where the page goes
        column: what a foreign file calls its signals, as SIGNAL=NAME
        joints: of a ROS bag, in the arm's order
        real_time: not faster than the recording's clock
        save_state: where the state goes, to resume from
        resume: a saved state to go on from
        as_json: print one JSON object
    """

    output: Path | None = None
    picture: Path | None = None
    cutoff_hz: float | None = 10.0
    accuracy: float = 0.01
    report: Path | None = None
    column: list[str] | None = None
    joints: str | None = None
    real_time: bool = False
    save_state: Path | None = None
    resume: Path | None = None
    as_json: bool = False


def weigh_online(
    ctx: typer.Context, model_path: Path, recording_path: Path, wishes: OnlineWishes | None = None
) -> None:
    """Replays a recording, shows how the payload becomes known, and ends with it.

    Exit code 1 when the answer is not to be trusted.

    Args:
        ctx: of the verb
        model_path: the identified empty arm (.json)
        recording_path: of the loaded arm
        wishes: what else is wanted
    """
    from steelyard.cli.weigh import gain_of
    from steelyard.identification import DynamicModel
    from steelyard.torque.online import OnlineEstimator, OnlineOptions

    wish = wishes or OnlineWishes()
    model = DynamicModel.load(model_path)
    recording = read_wished(recording_path, wish.column, wish.joints, robot=model.robot)
    warnings = _quality(recording, model, recording_path)
    estimator = OnlineEstimator(model, model.kinematics, options=OnlineOptions(accuracy=wish.accuracy))
    state = estimator.init() if wish.resume is None else _resumed(wish.resume, estimator)
    drive = gain_of(model, recording, recording_path)
    samples, delay_s = _samples(recording, model, drive, wish, state.last_s)
    spacing_s = max(_POINT_S, recording.duration_s / _MOST_POINTS)
    with _screen(f"{recording_path.name}, {model.robot.name}", quiet=wish.as_json) as show:
        state, points = _run(estimator, state, samples, spacing_s, show)
    payload = estimator.estimate(state)
    if wish.save_state is not None:
        _save_state(wish.save_state, estimator, state)
    if wish.output is not None:
        payload.save(wish.output)
    if wish.picture is not None:
        from steelyard.drawing import save_picture
        from steelyard.report.online import online_plot

        plot = online_plot(points, accuracy=wish.accuracy)
        save_picture([plot], wish.picture, title=recording_path.name)
    if wish.report is not None:
        _report(ctx, wish, (model_path, recording_path), (model, payload, recording, points))
    told = _Told(payload, state, points, delay_s, warnings, wish)
    if wish.as_json:
        print_json(told.facts())
    else:
        told.speak()
    if not payload.verdict.ok:
        raise typer.Exit(1)


def _report(
    ctx: typer.Context,
    wish: OnlineWishes,
    files: tuple[Path, Path],
    found: tuple[DynamicModel, Payload, Recording, list[CurvePoint]],
) -> None:
    """Writes the page: that of `steelyard weigh`, with the curve."""
    from steelyard.cli.identify import prepared_from
    from steelyard.cli.weigh import gain_of
    from steelyard.report import Section
    from steelyard.report.online import online_plot
    from steelyard.report.payload import payload_page
    from steelyard.signals import Preparation

    model, payload, recording, points = found
    how = Preparation(cutoff_hz=wish.cutoff_hz, kinematics=model.kinematics)
    samples = prepared_from(files[1], recording, how, gain_of(model, recording, files[1]))
    curve = Section("How the answer became known", (), [online_plot(points, accuracy=wish.accuracy)])
    settings = run_settings(ctx, [*files, wish.resume])
    page = payload_page(model, payload, samples, extra=[curve], settings=settings)
    write_report(page.with_quality(qualities({files[1].name: recording}, model.robot)), wish.report)


def _quality(recording: Recording, model: DynamicModel, path: Path) -> list[str]:
    """Warnings about a recording, a sentence each; errors are raised."""
    from steelyard.quality import check_quality

    report = check_quality(recording, expected_joints=model.robot.n)
    if not report.ok:
        raise InvalidRecording(f"{path}: the recording is not fit for use: {report.findings[0].sentence}")
    return [f"{path}: {words}" for words in report.warnings]


def _samples(
    recording: Recording, model: DynamicModel, drive: DriveModel | None, wish: OnlineWishes, after_s: float
) -> tuple[Iterator[OnlineSample], float]:
    """The stream, on a clock that goes on after a time, and how late a sample comes, [s]."""
    from steelyard.signals import CausalPath, Preparation, replay

    how = Preparation(cutoff_hz=wish.cutoff_hz, kinematics=model.kinematics)
    samples = replay(recording, how, drive=drive, sleep=time.sleep if wish.real_time else None)
    if np.isfinite(after_s):
        samples = (sample._replace(t=sample.t + after_s + _RESUME_S) for sample in samples)
    return samples, CausalPath.of(recording, how).delay_s


def _run(
    estimator: OnlineEstimator,
    state: OnlineState,
    samples: Iterator[OnlineSample],
    spacing_s: float,
    show: Callable[[CurvePoint], None],
) -> tuple[OnlineState, list[CurvePoint]]:
    from steelyard.torque.online.curve import curve_point

    points: list[CurvePoint] = []
    due_s = -np.inf
    for sample in samples:
        state = estimator.step(state, sample)
        if state.last_s >= due_s:
            points.append(curve_point(estimator, state))
            show(points[-1])
            due_s = max(due_s + spacing_s, state.last_s + spacing_s / 2)
    if not points:
        raise InvalidRecording("the recording is too short to replay: no sample came out of the filters")
    if state.last_s > points[-1].t:
        points.append(curve_point(estimator, state))
        show(points[-1])
    return state, points


@contextmanager
def _screen(title: str, *, quiet: bool) -> Iterator[Callable[[CurvePoint], None]]:
    """A function that shows a point: live in a terminal, elsewhere one line for each second."""
    if quiet:
        yield lambda point: None
        return
    if not sys.stdout.isatty():
        print(f"{title}, sample by sample:")
        yield _Lines()
        return
    from rich.live import Live
    from rich.text import Text

    with Live(refresh_per_second=10) as live:
        yield lambda point: live.update(Text(f"{title}\n{_line(point)}\n{point.status}"))


class _Lines:
    """Prints one line for each second of the recording."""

    def __init__(self) -> None:
        self.due_s = -np.inf

    def __call__(self, point: CurvePoint) -> None:
        if point.t >= self.due_s - 1e-9:
            print(f"{_line(point)}  {point.status}")
            self.due_s = point.t + 1.0


def _line(point: CurvePoint) -> str:
    """A point at a glance."""
    if not np.isfinite(point.mass_std):
        return f"{point.t:8.2f} s  mass unknown"
    words = f"{point.t:8.2f} s  mass {point.mass:7.3f} +- {1.96 * point.mass_std:6.3f} kg"
    if np.isfinite(point.com_std).all():
        words += "  com " + " ".join(f"{1e3 * x:6.1f}" for x in point.com)
        words += f" +- {1.96e3 * point.com_std.max():5.1f} mm"
    return words


class _Told:
    """What is said at the end, as words or as one JSON object."""

    def __init__(
        self,
        payload: Payload,
        state: OnlineState,
        points: list[CurvePoint],
        delay_s: float,
        warnings: list[str],
        wish: OnlineWishes,
    ) -> None:
        from steelyard.torque.online.curve import convergence_times

        self.payload, self.state, self.points, self.wish = payload, state, points, wish
        self.delay_s, self.warnings = delay_s, warnings
        self.converged = convergence_times(points)

    def facts(self) -> dict[str, Any]:
        """Everything, for programs."""
        points = [point for point in self.points if np.isfinite(point.mass_std)]
        names = ("t", "mass", "mass_std", "com", "com_std", "payload", "converged")
        return {
            **self.payload.to_dict(),
            "converged_s": self.converged.get(len(self.state.history) + 1),
            "accuracy": self.wish.accuracy,
            "delay_s": self.delay_s,
            "samples": self.state.counts._asdict(),
            "history": self._episodes(),
            "curve": {name: [getattr(point, name) for point in points] for name in names},
            "warnings": self.warnings,
            "file": None if self.wish.output is None else str(self.wish.output),
        }

    def _episodes(self) -> list[dict[str, Any]]:
        return [
            {
                "start_s": episode.start_s,
                "end_s": episode.end_s,
                "mass": episode.vector[0],
                "mass_std": np.sqrt(episode.covariance[0, 0]),
                "vector": episode.vector,
                "converged_s": self.converged.get(i + 1),
            }
            for i, episode in enumerate(self.state.history)
        ]

    def speak(self) -> None:
        """The same at a glance, for people."""
        from steelyard.cli.weigh import payload_rows

        print()
        if self.payload.body.mass:
            title = "What the arm carries (95 % intervals)"
            print_table(title, ("", "weighed", "+-", "unit"), payload_rows(self.payload))
        print(f"\n{self.payload.status[0].upper()}{self.payload.status[1:]}.")
        print(self._when())
        if self.state.history:
            rows = [
                (
                    f"{i + 1}",
                    f"{episode['start_s']:.2f}",
                    f"{episode['end_s']:.2f}",
                    number(episode["mass"]),
                    number(1.96 * episode["mass_std"], 2),
                )
                for i, episode in enumerate(self._episodes())
            ]
            print()
            print_table("Payloads before", ("", "from [s]", "to [s]", "mass [kg]", "+-"), rows)
        for words in self.warnings:
            print(f"warning: {words}")

    def _when(self) -> str:
        asked = f"{100 * self.wish.accuracy:g} %"
        since = self.converged.get(len(self.state.history) + 1)
        late = f"samples come {self.delay_s:.2f} s after their instant, for the filter"
        if since is None:
            return f"The mass did not become known to {asked}; {late}."
        return f"The mass is known to {asked} since {since:.1f} s; {late}."


def _fingerprint(estimator: OnlineEstimator) -> str:
    """A short name of a model's numbers."""
    return hashlib.sha256(estimator.model.estimate.value.tobytes()).hexdigest()[:16]


def _save_state(path: Path, estimator: OnlineEstimator, state: OnlineState) -> None:
    if not path.parent.is_dir():
        raise UnreadableFile(f"cannot write {path}: there is no folder {path.parent}")
    path.write_text(json.dumps({"model": _fingerprint(estimator), **state.to_dict()}) + "\n")


def _resumed(path: Path, estimator: OnlineEstimator) -> OnlineState:
    """A saved state, if it is one of this model."""
    from steelyard.torque.online import OnlineState

    try:
        content = json.loads(path.read_text())
    except OSError as error:
        raise UnreadableFile(f"cannot read {path}: {error.strerror}") from error
    except ValueError as error:
        raise UnreadableFile(f"{path} is not JSON: {error}") from error
    try:
        state = OnlineState.from_dict(content)
    except (AttributeError, KeyError, TypeError) as error:
        raise UnreadableFile(f"{path} is not a whole online state: {type(error).__name__} {error}") from error
    if content.get("model") != _fingerprint(estimator):
        raise InvalidSamples(f"{path} was saved with another model; start without --resume")
    return state
