"""`steelyard identify ROBOT RECORDING... -o MODEL`: the empty arm, from its own motion and torques."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from steelyard.cli.arms import FlangeOption, GravityOption, LockOption, RobotArgument, load_arm
from steelyard.cli.gains import drive_gains
from steelyard.cli.output import JsonFlag, in_a_folder, number, print_json, print_table, progress
from steelyard.cli.recordings import ColumnOption, JointsOption, read_wished
from steelyard.cli.reporting import ReportOption, qualities, run_settings, short_names, write_report
from steelyard.errors import InvalidSamples

if TYPE_CHECKING:
    from steelyard.identification import DynamicModel, Validation
    from steelyard.identification.feasible import FeasibleArm
    from steelyard.recording import Recording, Samples
    from steelyard.robot import DriveModel, RobotModel
    from steelyard.signals import Preparation


_NAMED = 5  # weak parameters that are named


def command(
    ctx: typer.Context,
    robot: RobotArgument,
    recordings: Annotated[list[Path], typer.Argument(help="Recordings of the empty arm.")],
    output: Annotated[
        Path, typer.Option("--output", "-o", callback=in_a_folder, help="Where the model goes (.json).")
    ],
    validate: Annotated[
        list[Path] | None, typer.Option(help="A recording to predict, not to fit; may be repeated.")
    ] = None,
    friction: Annotated[
        str,
        typer.Option(
            help="auto (chosen by prediction), linear, band, power, smooth, smooth-power, stribeck, load, "
            "presliding, presliding-power, presliding-load."
        ),
    ] = "auto",
    gains: Annotated[
        str,
        typer.Option(
            help="Torque for each ampere [Nm/A]: auto, robot, targets (of the controller), k1,k2,..., "
            "or mass=KG:FILE (a run with a known payload)."
        ),
    ] = "auto",
    cutoff: Annotated[
        str, typer.Option(help="Of the filter on the motion [Hz]; auto for the one that predicts best.")
    ] = "10",
    torque_cutoff: Annotated[
        float | None,
        typer.Option(help="Of a filter on the torques [Hz]; none by default (it blurs friction)."),
    ] = None,
    feasible: Annotated[
        bool, typer.Option("--feasible", help="Also the nearest parameters that real bodies can have.")
    ] = False,
    urdf: Annotated[Path | None, typer.Option(callback=in_a_folder, help="Write these into a URDF.")] = None,
    picture: Annotated[
        Path | None, typer.Option(callback=in_a_folder, help="Where a picture goes (.png).")
    ] = None,
    report: ReportOption = None,
    lock: LockOption = None,
    flange: FlangeOption = None,
    gravity: GravityOption = None,
    column: ColumnOption = None,
    joints: JointsOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Identifies the empty arm: base parameters, friction, and how well they predict other motions.

    Exit code 1 when the motion says nothing about some of them, or much of a joint's torque is unexplained.
    """
    from steelyard.identification import identify

    arm = load_arm(robot, lock, flange, gravity)
    read = partial(read_wished, column=column, joints=joints, robot=arm)
    raw = {path: read(path) for path in [*recordings, *(validate or [])]}
    drives, gain_words = drive_gains(arm, [raw[path] for path in recordings], gains, read)
    if drives is not None:
        arm = arm.with_drive(replace(arm.drive, gain=drives.value, gain_std=drives.working_std))
    drive = None if drives is None else arm.drive
    how = _preparation(arm, [raw[path] for path in recordings], cutoff, torque_cutoff, drive)
    prepared = {path: prepared_from(path, recording, how, drive) for path, recording in raw.items()}
    training = [prepared[path] for path in recordings]
    warnings = [f"{p}: {words}" for p, part in prepared.items() for words in part.warnings]
    warnings += [
        f"{p} is a training recording too: it validates nothing" for p in validate or [] if p in recordings
    ]
    with progress(f"identifying {arm.name}", quiet=as_json) as done:
        model = identify(arm, training, friction=friction, progress=done)
    model.save(output)
    bodies = _feasible(model) if feasible or urdf else None
    if urdf is not None:
        from steelyard.io.arms import arm_for_export
        from steelyard.io.urdf import write_urdf

        write_urdf(arm_for_export(model).robot, urdf)
    checks = {str(path): model.validate(prepared[path]) for path in [*recordings, *(validate or [])]}
    if picture is not None or report is not None:
        from steelyard.report.identification import identification_page

        names = short_names(raw)
        page = identification_page(
            model,
            {names[path]: prepared[path] for path in recordings},
            {names[path]: prepared[path] for path in validate or [] if path not in recordings},
            notes=[f"Drives: {gain_words}.", *([] if bodies is None else [f"Real bodies: {bodies.status}"])],
            doubts=warnings,
            settings=run_settings(ctx, [robot, *raw, gains.partition(":")[2]]),
        )
        found = qualities({names[path]: recording for path, recording in raw.items()}, arm)
        write_report(page.with_quality(found), report, picture)
    told = _Told(
        model, checks, None if drives is None else drives.value, gain_words, warnings, bodies, output, report
    )
    if as_json:
        print_json(told.facts())
    else:
        told.speak(len(recordings))
    if not model.verdict.ok:
        raise typer.Exit(1)


def _preparation(
    robot: RobotModel,
    recordings: Sequence[Recording],
    cutoff: str,
    torque_cutoff: float | None,
    drive: DriveModel | None,
) -> Preparation:
    from steelyard.identification import choose_cutoff
    from steelyard.signals import Preparation

    how = Preparation(torque_cutoff_hz=torque_cutoff)
    if cutoff == "auto":
        return replace(how, cutoff_hz=choose_cutoff(robot, recordings, how, drive=drive)[0])
    try:
        return replace(how, cutoff_hz=float(cutoff))
    except ValueError:
        raise InvalidSamples(f"--cutoff is a number [Hz] or auto; got '{cutoff}'") from None


def prepared_from(path: Path, recording: Recording, how: Preparation, drive: DriveModel | None) -> Samples:
    """The samples of a recording; what is wrong with it is said with its file.

    Args:
        path: of the recording's file
        recording: as measured
        how: to prepare it
        drive: that makes torques of motor currents; None where torques were measured
    """
    from steelyard.errors import SteelyardError
    from steelyard.signals import prepare

    try:
        return prepare(recording, how, drive=drive)
    except SteelyardError as error:
        raise type(error)(f"{path}: {error}") from error


def _feasible(model: DynamicModel) -> FeasibleArm:
    from steelyard.identification.feasible import feasible_parameters
    from steelyard.identification.least_squares import solve_weighted

    R = model.factor.weighted(solve_weighted(model.factor).weights)
    return feasible_parameters(model.robot, model.basis, R)


class _Told:
    """What the verb says, as words or as one JSON object."""

    def __init__(
        self,
        model: DynamicModel,
        checks: dict[str, Validation],
        gain: np.ndarray | None,
        gain_words: str,
        warnings: list[str],
        bodies: FeasibleArm | None,
        output: Path,
        report: Path | None,
    ) -> None:
        self.model, self.checks, self.gain, self.gain_words = model, checks, gain, gain_words
        self.warnings, self.bodies, self.output, self.report = warnings, bodies, output, report

    def facts(self) -> dict[str, Any]:
        """Everything, for programs."""
        model, estimate = self.model, self.model.estimate
        weak = estimate.weak()
        return {
            "model": str(self.output),
            "base_parameters": len(model.basis),
            "parameters": dict(zip(estimate.names, estimate.value.tolist(), strict=True)),
            "std": dict(zip(estimate.names, estimate.std.tolist(), strict=True)),
            "weak": list(weak),
            "friction": model.law.name,
            "friction_scores": None if model.choice is None else model.choice.scores,
            "shapes": {name: getattr(model.law, name) for name in model.law.free_shapes},
            "alpha": model.law.exponent,
            "gains": self.gain,
            "gains_from": self.gain_words,
            "condition": estimate.condition,
            "made_from": list(model.made_from),
            "noise": estimate.noise,
            "recordings": {
                path: {"rms": v.rms, "relative": v.relative, "correlation": v.correlation}
                for path, v in self.checks.items()
            },
            "feasible": None
            if self.bodies is None
            else {"rms_ratio": self.bodies.rms_ratio, "status": self.bodies.status},
            "verdict": estimate.verdict.to_dict(),
            "warnings": self.warnings,
            "report": None if self.report is None else str(self.report),
        }

    def speak(self, training: int) -> None:
        """The same at a glance, for people."""
        model, estimate = self.model, self.model.estimate
        print(f"{model.robot.name}: {estimate.status}.")
        law = model.law.name
        if model.choice is not None:
            scores = ", ".join(f"{name} {100 * score:.1f} %" for name, score in model.choice.scores.items())
            law += f", chosen by predicting {model.choice.folds} ({scores})"
        print(f"Friction law: {law}.\nDrives: {self.gain_words}.\n")
        title = "Relative residual of the torque of each joint [%]"
        print_table(title, self._headers(), self._rows(training), words=(0, 1))
        print()
        rows = [(joint, *cells) for joint, cells in zip(model.robot.joint_names, self._drives(), strict=True)]
        names = ("", "Fc [Nm]", "Fv", "exponent", "noise [Nm]")
        print_table("Friction of each joint, with standard deviations", names, rows)
        if self.bodies is not None:
            print(f"\nReal bodies: {self.bodies.status}")
        for words in self.warnings:
            print(f"warning: {words}")
        print(f"\n{self._weak()}")
        print(f"Model: {self.output}")
        if self.report is not None:
            print(f"Report: {self.report}")

    def _weak(self) -> str:
        """How many parameters are weak, and the worst of them by name."""
        estimate = self.model.estimate
        weak = estimate.weak()
        told = f"{len(weak)} of {len(estimate.names)} parameters are weak (std above 30 %)"
        if not weak:
            return f"{told}."
        relative = dict(zip(estimate.names, estimate.relative_std, strict=True))
        worst = sorted(weak, key=lambda name: -relative[name])
        more = f" and {len(worst) - _NAMED} more" if len(worst) > _NAMED else ""
        return f"{told}: {', '.join(worst[:_NAMED])}{more}."

    def _headers(self) -> tuple[str, ...]:
        return ("recording", "", *(f"{j + 1}" for j in range(self.model.robot.n)), "mean")

    def _rows(self, training: int) -> list[tuple[str, ...]]:
        rows = []
        for i, (path, v) in enumerate(self.checks.items()):
            role = "fitted" if i < training else "predicted"
            cells = (f"{100 * x:.1f}" for x in (*v.relative, v.relative.mean()))
            rows.append((Path(path).stem[-22:], role, *cells))
        return rows

    def _drives(self) -> list[tuple[str, ...]]:
        estimate = self.model.estimate
        at = {name: i for i, name in enumerate(estimate.names)}
        rows = []
        for j in range(self.model.robot.n):
            cells = []
            for kind in ("Fc", "Fv"):
                i = at[f"{kind}{j + 1}"]
                cells.append(f"{number(estimate.value[i])} +- {number(estimate.std[i], 2)}")
            rows.append((*cells, number(self.model.law.exponent[j], 3), number(estimate.noise[j], 3)))
        return rows
