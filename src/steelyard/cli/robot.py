"""`steelyard robots` lists the bundled arms; `steelyard robot NAME` shows one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from steelyard.cli import options
from steelyard.cli.output import Output, number

if TYPE_CHECKING:
    from steelyard.robot import ParameterBasis, RobotModel


_LIMITS = ("q_min", "q_max", "v_max", "a_max", "tau_max")
_FRICTION = {"coulomb": "[Nm or N]", "viscous": "[Nm s/rad or N s/m]"}


def list_command(as_json: options.JsonFlag = False) -> None:
    """Lists the bundled arms."""
    from steelyard.robot import load_robot, robot_names

    output = Output(as_json)
    arms = [load_robot(name) for name in robot_names()]
    rows = [(arm.name, str(arm.n), arm.source.split(". ")[0]) for arm in arms]
    title = "Bundled arms (a .urdf or .toml file will do as well)"
    output.emit(
        {"robots": [{"name": a.name, "joints": a.n, "source": a.source} for a in arms]},
        lambda: output.table(title, ("name", "joints", "arm"), rows, words=(0, 2)),
    )


def command(
    name: options.RobotArgument,
    symbolic: Annotated[
        bool,
        typer.Option("--symbolic", help="Print base parameters as exact formulas (DH arms only)."),
    ] = False,
    rigid: Annotated[
        bool, typer.Option("--rigid", help="Count the links only, without rotors and friction.")
    ] = False,
    lock: options.LockOption = None,
    flange: options.FlangeOption = None,
    gravity: options.GravityOption = None,
    as_json: options.JsonFlag = False,
) -> None:
    """Shows an arm: joints, limits, flange and base parameters."""
    from steelyard.robot import ParameterBasis

    robot = options.load_arm(name, lock, flange, gravity)
    basis = ParameterBasis.of(robot, drive=not rigid)
    formulas = [f"pi_{i + 1} = {words}" for i, words in enumerate(basis.names)]
    if symbolic:
        from steelyard.robot._symbolic import SymbolicBasis

        formulas = list(SymbolicBasis.of(robot, drive=not rigid).lines())
    output = Output(as_json)
    output.emit(
        _facts(robot, basis, formulas), lambda: _show(output, robot, basis, formulas, rigid=rigid)
    )


def _show(
    output: Output, robot: RobotModel, basis: ParameterBasis, formulas: list[str], *, rigid: bool
) -> None:
    source = ""
    if robot.flange not in robot.last_links:  # that of a URDF was printed when it was read
        source = f"{robot.source}\n"
    print(f"{robot.name}: {robot.n} joints, flange frame '{robot.flange}'\n{source}")
    others = [name for name in robot.last_links if name != robot.flange]
    if others and robot.flange in robot.last_links:  # else a table, which has one flange
        output.table(
            "Other frames behind the last joint",
            ("frame", "option"),
            [(name, f"--flange {name}") for name in others],
            words=(0, 1),
        )
        print()
    rows = [
        (joint, kind, *(number(getattr(robot.limits, limit)[j]) for limit in _LIMITS))
        for j, (joint, kind) in enumerate(zip(robot.joint_names, robot.joint_types, strict=True))
    ]
    headers = ("joint", "type", "q min", "q max", "v max", "a max", "tau max")
    output.table(
        "Joints [rad, rad/s, rad/s^2, Nm; m, m/s, m/s^2, N where prismatic]",
        headers,
        rows,
        words=(0, 1),
    )
    for name, unit in _FRICTION.items():
        if getattr(robot.drive, name).any():
            print(f"{name} friction {unit}: {', '.join(map(number, getattr(robot.drive, name)))}")
    print(
        f"\n{len(basis)} base parameters out of {basis.K.shape[1] if not rigid else 10 * robot.n}:"
    )
    print("\n".join(formulas))


def _facts(robot: RobotModel, basis: ParameterBasis, formulas: list[str]) -> dict[str, object]:
    return {
        "name": robot.name,
        "source": robot.source,
        "joints": list(robot.joint_names),
        "joint_types": list(robot.joint_types),
        "flange": robot.flange,
        "flange_candidates": list(robot.last_links),
        "gravity_base": robot.gravity_base,
        "held": dict(robot.held),
        **{name: getattr(robot.drive, name) for name in _FRICTION},
        "limits": {limit: getattr(robot.limits, limit) for limit in _LIMITS},
        "base_parameters": len(basis),
        "formulas": formulas,
        "weakest_kept": basis.weakest_kept,
        "strongest_dropped": basis.strongest_dropped,
    }
