"""`steelyard weigh MODEL RECORDING...`: what the arm carries."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from steelyard.cli.identify import prepared_from
from steelyard.cli.output import JsonFlag, in_a_folder, print_json, print_table
from steelyard.cli.recordings import ColumnOption, JointsOption, read_wished
from steelyard.cli.reporting import ReportOption, qualities, run_settings, write_report

if TYPE_CHECKING:
    from steelyard.identification import DynamicModel
    from steelyard.payload import Payload
    from steelyard.recording import Recording, Samples
    from steelyard.report import Page
    from steelyard.robot import DriveModel
    from steelyard.signals import Preparation


_ALL = "all"


def command(
    ctx: typer.Context,
    model: Annotated[Path, typer.Argument(help="The identified empty arm (.json, from steelyard identify).")],
    recordings: Annotated[list[Path], typer.Argument(help="Recordings of the loaded arm.")],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", callback=in_a_folder, help="Where the payload goes (.json)."),
    ] = None,
    method: Annotated[
        str,
        typer.Option(
            help="direct, difference, weighted-difference, torque-change, manufacturer, static, combined,"
            " joint; all to see them beside each other."
        ),
    ] = "direct",
    fix: Annotated[
        list[str] | None,
        typer.Option(help="A number that is known, as mass=2.8, cx=0 or inertia=0; may be repeated."),
    ] = None,
    empty: Annotated[
        list[Path] | None,
        typer.Option(help="Empty runs, for torque-change (the same motions, in order) and joint."),
    ] = None,
    tool: Annotated[
        Path | None,
        typer.Option(help="A tool the arm carried when it was identified (.json): answer with both."),
    ] = None,
    cutoff: Annotated[float, typer.Option(help="Of the filter on the motion [Hz].")] = 10.0,
    online: Annotated[
        bool, typer.Option("--online", help="Sample by sample, showing how the answer becomes known.")
    ] = False,
    accuracy: Annotated[
        float, typer.Option(help="Online: 95 % half-width of the mass at which it has converged [%].")
    ] = 1.0,
    real_time: Annotated[
        bool, typer.Option("--real-time", help="Online: not faster than the recording's clock.")
    ] = False,
    save_state: Annotated[Path | None, typer.Option(help="Online: where the state goes, to resume.")] = None,
    resume: Annotated[Path | None, typer.Option(help="Online: a saved state to go on from.")] = None,
    picture: Annotated[
        Path | None, typer.Option(callback=in_a_folder, help="Where a picture goes (.png).")
    ] = None,
    report: ReportOption = None,
    column: ColumnOption = None,
    joints: JointsOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Weighs what the arm carries beyond the model. Exit code 1 when the answer is not to be trusted."""
    from steelyard.identification import DynamicModel
    from steelyard.payload import Payload
    from steelyard.signals import Preparation

    if online:
        from steelyard.cli.weigh_online import OnlineWishes, weigh_online

        _require_online(recordings, method, fix, empty, tool)
        wishes = OnlineWishes(
            output=output,
            picture=picture,
            report=report,
            column=column,
            joints=joints,
            cutoff_hz=cutoff,
            accuracy=accuracy / 100,
            real_time=real_time,
            save_state=save_state,
            resume=resume,
            as_json=as_json,
        )
        return weigh_online(ctx, model, recordings[0], wishes)
    arm = DynamicModel.load(model)
    how = Preparation(cutoff_hz=cutoff, kinematics=arm.kinematics)
    runs = _Runs(arm, how, partial(read_wished, column=column, joints=joints, robot=arm.robot), recordings)
    runs.add_empty(empty or [])
    fixed = _fixed(fix or [])
    payload = runs.weighed("direct" if method == _ALL else method, fixed)
    others = _compared(runs, fixed) if method == _ALL else {}
    if tool is not None:
        payload = payload.together_with(Payload.load(tool))
    if output is not None:
        payload.save(output)
    if picture is not None or report is not None:
        settings = run_settings(ctx, [model, *recordings, *(empty or []), tool])
        write_report(runs.page(payload, others, settings), report, picture)
    if as_json:
        facts = {name: p if isinstance(p, str) else payload_facts(p, None) for name, p in others.items()}
        files = {"picture": picture, "report": report}
        told = {name: None if file is None else str(file) for name, file in files.items()}
        more = {"methods": facts} if others else {}
        print_json({**payload_facts(payload, output), **more, **told, "warnings": runs.warnings})
    else:
        _speak(payload, others)
        for words in runs.warnings:
            print(f"warning: {words}")
        for what, path in (("Payload", output), ("Picture", picture), ("Report", report)):
            if path is not None:
                print(f"{what}: {path}")
    if not payload.verdict.ok:
        raise typer.Exit(1)


def _require_online(
    recordings: list[Path], method: str, fix: list[str] | None, empty: list[Path] | None, tool: Path | None
) -> None:
    from steelyard.errors import InvalidSamples

    if len(recordings) != 1:
        raise InvalidSamples(f"--online replays one recording, got {len(recordings)}")
    if method != "direct" or fix or empty or tool:
        raise InvalidSamples("--online is direct: leave --method, --fix, --empty and --tool out")


def gain_of(arm: DynamicModel, recording: Recording, path: Path) -> DriveModel | None:
    """The drives that make torques of currents, where the model was made from currents.

    Args:
        arm: the identified arm
        recording: to compare with it
        path: of its file
    """
    from steelyard.errors import InvalidSamples

    if not arm.from_currents:
        if recording.tau is None and recording.current is not None:
            raise InvalidSamples(
                f"{path} has motor currents, the model was fitted to measured torques: record torques, or"
                " identify the arm from currents"
            )
        return None
    if recording.current is None:
        raise InvalidSamples(
            f"{path} has no motor currents, but the model was fitted to torques made of currents"
        )
    return arm.robot.drive


class _Runs:
    """Recordings on the command line, prepared when they are needed."""

    def __init__(
        self,
        arm: DynamicModel,
        how: Preparation,
        read: Callable[[Path], Recording],
        loaded: Sequence[Path],
    ) -> None:
        self.arm, self.how, self.read, self.paths = arm, how, read, loaded
        self.raw = [read(path) for path in loaded]
        self.loaded = [self._prepared(*run) for run in zip(loaded, self.raw, strict=True)]
        self.empty: list[Samples] = []

    @property
    def warnings(self) -> list[str]:
        """What is wrong with the recordings, a sentence each."""
        parts = zip(self.paths, self.loaded, strict=True)
        return [f"{path}: {words}" for path, part in parts for words in part.warnings]

    def add_empty(self, paths: Sequence[Path]) -> None:
        """Empty runs beside the loaded ones."""
        self.empty += [self._prepared(path, self.read(path)) for path in paths]

    def page(self, payload: Payload, others: dict[str, Payload | str], settings: dict[str, str]) -> Page:
        """The page of the answer."""
        from steelyard.report.payload import payload_page

        answers = {name: answer for name, answer in others.items() if not isinstance(answer, str)}
        recordings = {file.name: raw for file, raw in zip(self.paths, self.raw, strict=True)}
        page = payload_page(self.arm, payload, self.loaded[0], others=answers, settings=settings)
        return page.with_quality(qualities(recordings, self.arm.robot))

    def weighed(self, method: str, fixed: dict[str, float]) -> Payload:
        from steelyard.torque import weigh

        empty = self._said_by_controller() if method == "manufacturer" else self.empty
        return weigh(self.arm, self.loaded, method=method, fixed=fixed, empty=empty or None)

    def _prepared(self, path: Path, recording: Recording) -> Samples:
        return prepared_from(path, recording, self.how, gain_of(self.arm, recording, path))

    def _said_by_controller(self) -> list[Samples]:
        """The controller's own torque for each loaded motion, as if it had been measured."""
        from dataclasses import replace

        from steelyard.errors import InvalidSamples

        for path, recording in zip(self.paths, self.raw, strict=True):
            if recording.tau_target is None:
                raise InvalidSamples(
                    f"{path} has no target torque of the controller, which the manufacturer method"
                    " takes for that of the empty arm"
                )
        said = [replace(recording, tau=recording.tau_target, current=None) for recording in self.raw]
        return [prepared_from(*run, self.how, None) for run in zip(self.paths, said, strict=True)]


def _compared(runs: _Runs, fixed: dict[str, float]) -> dict[str, Payload | str]:
    """The answer of each method, or why it has none."""
    from steelyard.errors import SteelyardError
    from steelyard.torque.methods import METHODS

    answers: dict[str, Payload | str] = {}
    for name in METHODS:
        try:
            answers[name] = runs.weighed(name, fixed)
        except SteelyardError as error:
            answers[name] = str(error)
    return answers


def _speak(payload: Payload, others: dict[str, Payload | str]) -> None:
    if others:
        print_table(
            "The methods beside each other (95 % intervals)",
            ("method", "mass, kg", "+-", "centre, mm", "+-", ""),
            [_method_row(name, answer) for name, answer in others.items()],
            words=(0, 5),
        )
        print()
    print_table("What the arm carries (95 % intervals)", ("", "weighed", "+-", "unit"), payload_rows(payload))
    status = payload.status if payload.status.endswith("?") else f"{payload.status}."
    print(f"\n{status[0].upper()}{status[1:]}")


def _method_row(name: str, answer: Payload | str) -> tuple[str, ...]:
    if isinstance(answer, str):
        return name, "", "", "", "", answer
    cells = [f"{answer.body.mass:.3f}", f"{1.96 * answer.std[0]:.3f}"]
    com = answer.body.com if answer.body.mass else ()
    cells += ["  ".join(f"{1e3 * x:.0f}" for x in com), f"{1.96e3 * answer.com_std.max():.0f}"]
    return name, *cells, "" if answer.verdict.ok else answer.status


def payload_rows(payload: Payload) -> list[tuple[str, ...]]:
    """The mass, the centre of mass and the inertia with intervals, as cells of a table.

    Args:
        payload: what was weighed
    """
    import numpy as np

    from steelyard.inertia import PARAMETER_NAMES

    rows = [("mass", payload.body.mass, payload.std[0], "kg")]
    com = payload.body.com if payload.body.mass else np.zeros(3)
    for i, axis in enumerate("xyz"):
        rows.append((f"centre of mass {axis}", 1e3 * com[i], 1e3 * payload.com_std[i], "mm"))
    for i in range(4, 10):
        name = f"{PARAMETER_NAMES[i]} about the flange"
        rows.append((name, payload.body.vector[i], payload.std[i], "kg m^2"))
    return [
        (name, f"{x:.4f}" if np.isfinite(std) else "unknown", f"{1.96 * std:.4f}", unit)
        for name, x, std, unit in rows
    ]


def _fixed(wishes: list[str]) -> dict[str, float]:
    from steelyard.errors import InvalidSamples

    fixed = {}
    for wish in wishes:
        name, _, value = wish.partition("=")
        try:
            fixed["m" if name == "mass" else name] = float(value)
        except ValueError:
            raise InvalidSamples(f"--fix is NAME=NUMBER, say mass=2.8; got '{wish}'") from None
    return fixed


def payload_facts(payload: Payload, output: Path | None) -> dict[str, Any]:
    """All that is known of a payload, for JSON.

    Args:
        payload: what was weighed
        output: where it was written
    """
    return {**payload.to_dict(), "file": None if output is None else str(output)}
