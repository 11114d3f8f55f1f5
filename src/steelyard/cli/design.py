"""`steelyard design ROBOT`: a motion that makes parameters visible and keeps every limit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from steelyard import saved
from steelyard.cli import options
from steelyard.cli.output import Output, number
from steelyard.errors import InvalidTrajectory

if TYPE_CHECKING:
    from steelyard.excitation import Design, DesignLimits, Objective
    from steelyard.report import Page
    from steelyard.robot import RobotModel


_ENDINGS = (".json", ".csv", ".script", ".yaml", ".yml", ".py")
_LISTED = "takes numbers as 1,2,3"


def command(
    ctx: typer.Context,
    robot: options.RobotArgument,
    harmonics: Annotated[int, typer.Option(max=100, help="Number of harmonics.")] = 5,
    period: Annotated[float, typer.Option(help="Length of the motion [s].")] = 10.0,
    objective: Annotated[
        str, typer.Option(help="condition, dopt, payload, xu2024 or liu2025.")
    ] = "condition",
    limits: Annotated[
        Path | None,
        typer.Option(help="A TOML file of limits (see docs/explanation/excitation.md)."),
    ] = None,
    envelope: Annotated[
        str | None,
        typer.Option(help="Stay within the peaks of another motion: xu2024 or a .json file."),
    ] = None,
    joints: Annotated[
        str | None,
        typer.Option(help="Joints that move, by name or number, as 4,5,6; all by default."),
    ] = None,
    start: Annotated[
        str | None,
        typer.Option(help="Posture at both ends, as q1,...,qn [rad], or 'home'; free by default."),
    ] = None,
    standing: Annotated[str | None, typer.Option("--from", help="The same as --start.")] = None,
    accuracy: Annotated[
        list[str] | None,
        typer.Option(
            metavar="WHAT=HOW",
            help="The shortest motion that weighs so well (95 %): mass=1% or 20g, com=2mm,"
            " inertia=5%;"
            " may be repeated.",
        ),
    ] = None,
    typical: Annotated[
        str, typer.Option(metavar="KGkg:X,Y,Z", help="With --accuracy: the payload to expect.")
    ] = "2kg:0,0,0.05",
    model: Annotated[
        Path | None,
        typer.Option(
            help="With --accuracy: the identified arm (.json), its noise, friction and gains."
        ),
    ] = None,
    longest: Annotated[
        float, typer.Option(help="With --accuracy: no motion longer than this [s].")
    ] = 60.0,
    periodic: Annotated[bool, typer.Option("--periodic", help="Not at rest at the ends.")] = False,
    rigid: Annotated[
        bool, typer.Option("--rigid", help="Links only, no rotors and friction.")
    ] = False,
    noise: Annotated[
        str | None,
        typer.Option(help="Torque noise of each joint for payload designs, as s1,...,sn [Nm]."),
    ] = None,
    starts: Annotated[
        int,
        typer.Option(
            max=100_000, help="Random starts; beyond 4 the best of a first descent go on."
        ),
    ] = 32,
    device: Annotated[str, typer.Option(help="Of the first descent: cpu or gpu.")] = "cpu",
    seed: Annotated[
        int, typer.Option(min=0, help="Of the starts; the same seed gives the same motion.")
    ] = 0,
    time_limit: Annotated[
        float | None, typer.Option(help="Take the best after so long [s].")
    ] = None,
    approach: Annotated[
        bool,
        typer.Option(
            "--approach",
            help="Enter from home (of a URDF: all joints at zero) and return to it (not for"
            " .json).",
        ),
    ] = False,
    rate: Annotated[
        float,
        typer.Option(min=0.1, max=1e5, help="Of the recording, and of the rows written [Hz]."),
    ] = 125.0,
    output: Annotated[
        Path | None,
        options.file_to_write(
            ".json, .csv, .script (URScript), .yaml (ROS 2) or .py (Franka).",
            "--output",
            "-o",
            endings=_ENDINGS,
        ),
    ] = None,
    picture: Annotated[
        Path | None,
        options.file_to_write(
            "A PNG of the motion against its limits; with a workspace, a second one of the axes.",
            endings=options.PICTURES,
            beside=lambda picture: _axes(picture),
        ),
    ] = None,
    report: options.ReportOption = None,
    package_dir: options.PackageOption = None,
    lock: options.LockOption = None,
    flange: options.FlangeOption = None,
    gravity: options.GravityOption = None,
    as_json: options.JsonFlag = False,
) -> None:
    """Designs a motion: the most informative one found that keeps the limits it is given.

    With --accuracy, the shortest one that weighs a payload as well as that.
    The certificate (1 kHz) says how closely, and what was not checked because no limit was given.
    """
    from steelyard.cli.design_accuracy import WeighingRequest
    from steelyard.excitation import DesignSettings, design
    from steelyard.report._motion import excitation_page, shortest_page

    _refuse_without_effect(ctx)
    arm = options.load_arm(robot, lock, flange, gravity)
    bounds = options.load_limits(arm, robot, limits, package_dir)
    out = Output(as_json)
    if envelope is not None:
        bounds = _narrowed(arm, bounds, envelope)
    ends = _posture(arm, start, standing)
    settings = DesignSettings(
        starts=starts,
        device=device,
        seed=seed,
        at_rest=not periodic,
        rate_hz=rate,
        time_limit_s=np.inf if time_limit is None else time_limit,
    )
    if accuracy:
        request = WeighingRequest.of(ctx, arm)
        with out.progress(f"{arm.name}: the shortest motion") as done:
            motion = request.motion(
                bounds,
                start=ends,
                harmonics=harmonics,
                longest_s=longest,
                settings=replace(
                    settings, progress=lambda x, at_s: done(x, f"a design of {at_s:.2f} s")
                ),
            )
        page = partial(shortest_page, request.loaded, bounds, motion)
        return _finish(ctx, arm, bounds, motion.design, page)
    moving = options.joint_indices(arm, joints)
    with out.progress(f"{arm.name}: {objective}, {harmonics} harmonics, {period:g} s") as done:
        found = design(
            arm,
            harmonics=harmonics,
            period_s=period,
            objective=_objective(objective, rigid, noise),
            limits=bounds,
            joints=moving,
            start=ends,
            settings=replace(settings, progress=lambda x, best: done(x, _merit_words(best))),
        )
    _finish(ctx, arm, bounds, found, partial(excitation_page, arm, bounds, found))


def _refuse_without_effect(ctx: typer.Context) -> None:
    """Refuses options that were given and have no effect beside the others."""
    given = ctx.params
    objective = given["objective"]
    output = given["output"]
    if given["accuracy"]:
        others = ("noise", "gravity") if given["model"] else ()
        options.refuse_without_effect(
            ctx, "with --accuracy", "period", "objective", "joints", "rigid"
        )
        options.refuse_without_effect(ctx, "with --model, which has its own", *others)
    else:
        options.refuse_without_effect(ctx, "without --accuracy", "typical", "model", "longest")
        if objective != "payload":
            options.refuse_without_effect(ctx, f"on the objective {objective}", "noise")
        if objective not in ("condition", "dopt"):
            options.refuse_without_effect(ctx, f"on the objective {objective}", "rigid")
    if output is None or output.suffix == ".json":
        options.refuse_without_effect(ctx, "without -o, or on a .json file", "approach")
    if given["limits"] is None:
        options.refuse_without_effect(ctx, "without a [scene] in --limits", "package_dir")


def _finish(
    ctx: typer.Context,
    arm: RobotModel,
    bounds: DesignLimits,
    found: Design,
    page: Callable[[], Page],
) -> None:
    """Writes and prints what was found."""
    from steelyard.drawing import save_picture
    from steelyard.report._motion import orientation_plot

    given = ctx.params
    out = Output(ctx.params["as_json"])
    output = given["output"]
    picture = given["picture"]
    report = given["report"]
    with saved.together():
        if output is not None and output.suffix == ".json":
            found.save(output)
        elif output is not None:
            _write(output, arm, bounds, found, given["rate"], approach=given["approach"])
        read = [given[name] for name in ("robot", "limits", "envelope", "model")]
        out.report(ctx, page, read, report=report, picture=picture)
        if picture is not None and bounds.workspace is not None:
            t = np.linspace(0, found.trajectory.period_s, 500)
            R = arm.forward_kinematics(found.trajectory.at(t)[0])[:, :3, :3]
            plot = orientation_plot(R, bounds.workspace)
            save_picture([plot], _axes(picture), title=f"A motion for {arm.name}")
    files = {"file": output, "picture": picture, "report": report}
    facts = {
        "robot": arm.name,
        **found.to_dict(),
        **{name: path or "" for name, path in files.items()},
    }
    out.emit(
        facts,
        partial(_show, out, found),
        files=files,
        verdict=found.verdict,
        requested={"a motion": found.value},
    )


def _posture(arm: RobotModel, start: str | None, standing: str | None) -> Any:
    """The posture at both ends, by either of its names."""
    if start is not None and standing is not None:
        raise InvalidTrajectory("--from and --start are the same: give one of them")
    if start is None:
        named, given = ("--from", standing)
    else:
        named, given = ("--start", start)
    if given is None or given == "home":
        if given is None:
            return None
        return arm.home
    return options.numbers(given, f"{named} {_LISTED}")


def _merit_words(best: float) -> str:
    if best < 1e300:
        return f"best log merit {best:.3f}"
    return "compiling"


def _axes(picture: Path) -> Path:
    return picture.with_name(f"{picture.stem}_axes{picture.suffix}")


def _narrowed(arm: RobotModel, bounds: DesignLimits, envelope: str) -> DesignLimits:
    from steelyard.excitation import DesignLimits
    from steelyard.trajectory import FourierTrajectory

    other = DesignLimits.envelope(
        FourierTrajectory.load(envelope), joint_names=arm.joint_names
    ).joints
    if len(other) != arm.n:
        raise InvalidTrajectory(
            f"trajectory '{envelope}' has {len(other)} joints, {arm.name} has {arm.n}"
        )
    return bounds.narrowed(other, joint_names=arm.joint_names)


def _objective(name: str, rigid: bool, noise: str | None) -> Objective:
    from steelyard.excitation import ConditionNumber, DOptimal, Objective, PayloadOptimal

    if name == "payload" and noise is not None:
        return PayloadOptimal(options.numbers(noise, f"--noise {_LISTED}"))
    if rigid and name in ("condition", "dopt"):
        if name == "condition":
            return ConditionNumber(drive=False)
        return DOptimal(drive=False)
    return Objective.named(name)


def _write(
    path: Path, arm: RobotModel, bounds: DesignLimits, found: Design, rate: float, *, approach: bool
) -> None:
    from steelyard.io._motions import write_motion
    from steelyard.trajectory import ApproachedTrajectory, Trajectory

    trajectory: Trajectory = found.trajectory
    certificate = found.certificate
    remarks = []
    if approach:
        v_max = bounds.joints.v_max
        a_max = bounds.joints.a_max
        trajectory = ApproachedTrajectory.within(
            found.trajectory, arm.home, v_max=v_max, a_max=a_max
        )
        certificate = bounds.certify(arm, trajectory)
        if not certificate.holds:
            closest = certificate.worst.sentence
            raise InvalidTrajectory(f"the way from home to the motion breaks a limit: {closest}")
        remarks.append(f"with the way from home, {arm.home.round(3).tolist()} rad, and back")
    remarks += [certificate.not_checked] if certificate.not_checked else []
    write_motion(path, trajectory, arm.joint_names, rate, remarks=remarks)


def _show(output: Output, found: Design) -> None:
    from steelyard.cli.design_accuracy import predicted_table

    head = f"{found.objective}: {found.value:.6g} (condition number {found.condition_number:.4g})"
    if found.prediction is not None:
        half = found.prediction["half_widths"][0]
        mass = found.prediction["payload"][0]
        head = (
            f"{found.trajectory.period_s:.3g} s weigh {mass:g} kg to {100 * half / mass:.2g} %"
            " (95 %)."
        )
    print(head)
    summary = found.verdict.summary
    print(f"{summary[0].upper()}{summary[1:]}; {found.seconds:.1f} s.\n")
    rows = [
        (
            check.limit,
            check.where,
            "-" if check.at_s is None else f"{check.at_s:.3f}",
            number(check.value, 5),
            number(check.bound, 5),
            number(check.margin, 3),
            check.unit,
        )
        for check in found.certificate.checks
    ]
    headers = ("limit", "closest", "at_s", "value", "bound", "margin", "unit")
    output.table(f"Certificate ({found.certificate.rate_hz:g} Hz)", headers, rows)
    for words, listed in (
        ("Bodies that were checked", found.certificate.bodies),
        ("Pairs left out, as no joint can separate them", found.certificate.left_out),
    ):
        if listed:
            print(f"\n{words}:\n  " + "\n  ".join(listed))
    if found.prediction is not None:
        output.table(*predicted_table(found))
    elif found.std:
        weighed = [(name, f"{std:.3g}") for name, std in found.std.items()]
        output.table(
            "\nPredicted standard deviations of a payload [SI]", ("parameter", "std"), weighed
        )
    for doubt in found.verdict.doubts:
        print(f"warning: {doubt.words}")
