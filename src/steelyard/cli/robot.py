"""`steelyard robot NAME`: one arm, its joints and its base parameters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from steelyard.cli.arms import FlangeOption, GravityOption, LockOption, RobotArgument, load_arm
from steelyard.cli.output import JsonFlag, number, print_json, print_table

if TYPE_CHECKING:
    from steelyard.robot import ParameterBasis, RobotModel


_LIMITS = ("q_min", "q_max", "v_max", "a_max", "tau_max")


def command(
    name: RobotArgument,
    symbolic: Annotated[
        bool, typer.Option("--symbolic", help="Base parameters as exact formulas (DH arms only).")
    ] = False,
    rigid: Annotated[bool, typer.Option("--rigid", help="Links only, no rotors and friction.")] = False,
    lock: LockOption = None,
    flange: FlangeOption = None,
    gravity: GravityOption = None,
    as_json: JsonFlag = False,
) -> None:
    """Shows an arm: joints, limits, flange, and what can be identified of it."""
    from steelyard.robot import ParameterBasis

    robot = load_arm(name, lock, flange, gravity)
    basis = ParameterBasis.of(robot, drive=not rigid)
    formulas = _formulas(robot, basis, symbolic=symbolic, rigid=rigid)
    if as_json:
        print_json(_facts(robot, basis, formulas))
        return
    print(f"{robot.name}: {robot.n} joints, flange frame '{robot.flange}'\n{robot.source}\n")
    rows = [
        (joint, kind, *(number(getattr(robot.limits, limit)[j]) for limit in _LIMITS))
        for j, (joint, kind) in enumerate(zip(robot.joint_names, robot.joint_types, strict=True))
    ]
    headers = ("joint", "type", "q min", "q max", "v max", "a max", "tau max")
    print_table(
        "Joints [rad, rad/s, rad/s^2, Nm; m, m/s, m/s^2, N where prismatic]", headers, rows, words=(0, 1)
    )
    print(f"\n{len(basis)} base parameters out of {basis.K.shape[1] if not rigid else 10 * robot.n}:")
    print("\n".join(formulas))


def _formulas(robot: RobotModel, basis: ParameterBasis, *, symbolic: bool, rigid: bool) -> list[str]:
    if symbolic:
        from steelyard.robot.symbolic import SymbolicBasis

        return list(SymbolicBasis.of(robot, drive=not rigid).lines())
    return [f"pi_{i + 1} = {words}" for i, words in enumerate(basis.names)]


def _facts(robot: RobotModel, basis: ParameterBasis, formulas: list[str]) -> dict[str, object]:
    return {
        "name": robot.name,
        "source": robot.source,
        "joints": list(robot.joint_names),
        "joint_types": list(robot.joint_types),
        "flange": robot.flange,
        "gravity_base": robot.gravity_base,
        "limits": {limit: getattr(robot.limits, limit) for limit in _LIMITS},
        "base_parameters": len(basis),
        "formulas": formulas,
        "weakest_kept": basis.weakest_kept,
        "strongest_dropped": basis.strongest_dropped,
    }
