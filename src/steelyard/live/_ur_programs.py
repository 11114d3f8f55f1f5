"""URScript programs for Universal Robots controllers: a payload, a motion, and stop.

A program starts with `def NAME():` or `sec NAME():` in column one and ends with `end` there. A
`sec` program runs within one control step beside the running program; a `def` program replaces it.

The program of a motion moves the arm only while this computer answers. Before its first beat it
confirms probes, by which this computer sees how late the rows are. Every control step it
reads a number, the beat. A beat that stays the same for `MAX_SILENCE_S` and a negative one end the
motion. The program then brakes on its path: it advances along the path by `rate` points per control
step, and the rate falls to 0 at a constant pace within the plan's braking time. Between two points
of the path it interpolates. `MotionStage` lists what the program reports meanwhile, in
an output register, with the last beat that it has received: a program that another one has replaced
says the same for ever, and the time until a beat comes back shows how late the rows are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import IntEnum
from typing import NamedTuple

import numpy as np

from steelyard._arrays import Array
from steelyard.live._controller import ControllerPayload, PathCommand

MAX_SILENCE_S = 0.12
"""Longest time without a new beat before the program stops the arm, [s]."""

STAGE_REGISTER = 47
"""Output integer register in which the program reports its number and stage."""

_MAX_START_DISTANCE = 0.01  # of a joint from the first point of the path, [rad]
_MAX_START_WAIT_S = 1.0  # for the next probe or the first beat
_HOLD_S = 0.1  # at the last point, until the servo has arrived
_LOOKAHEAD_S = 0.1  # of servoj
_GAIN = 300  # of servoj
_END_DECELERATION = 1.0  # at the end of a motion, [rad/s^2]
_STOP_DECELERATION = 4.0  # of a stop, [rad/s^2]

LAST_BEAT = 900
"""Largest beat; the next one is 1."""

PROBES = range(LAST_BEAT + 1, 1000)
"""Numbers in place of beats that the program confirms without starting."""

_BEAT_UNIT = 10  # of the beat in the register, which holds number, beat and stage of the program
_NUMBER_UNIT = _BEAT_UNIT * PROBES.stop
MAX_PROGRAM_NUMBER = 10**5
"""Largest number of a program: the register has 32 bits."""

STOP_PROGRAM = f"def steelyard_stop():\n  stopj({_STOP_DECELERATION:g})\nend\n"
"""Stops the arm; it replaces the program that runs."""


class MotionStage(IntEnum):
    """Stages of the program of a motion, as it reports them."""

    WAITING = 1  # for the first beat
    MOVING = 2
    FINISHED = 3
    SILENCE = 4  # no new beat came: it has stopped
    STOPPED = 5  # a stop was requested: it has stopped
    ELSEWHERE = 6  # the arm was not where the path begins: it has not moved
    BRAKING = 7  # after a silence or a request to stop


class ProgramReport(NamedTuple):
    """What the program of a motion reports.

    Attributes:
        stage: its stage
        beat: the last beat or probe that it has received; 0 before the first one
    """

    stage: MotionStage
    beat: int


class BeatScript(NamedTuple):
    """How a program receives the beat.

    Attributes:
        declarations: lines of the program that come first
        expression: the present beat
    """

    declarations: tuple[str, ...]
    expression: str


def register_beat(register: int) -> BeatScript:
    """The beat in an input integer register, which an RTDE client writes.

    Args:
        register: its number
    """
    return BeatScript((), f"read_input_integer_register({register})")


def socket_beat(host: str, port: int) -> BeatScript:
    """The beat as 32-bit numbers on a socket, which the program opens.

    Args:
        host: address of this computer, as the controller sees it
        port: where this computer listens
    """
    lines = (
        "global steelyard_received = 0",
        f'socket_open("{host}", {port}, "steelyard")',
        "thread steelyard_receiver():",
        "  while True:",
        '    local answer = socket_read_binary_integer(1, "steelyard", 0.5)',
        "    if answer[0] > 0:",
        "      steelyard_received = answer[1]",
        "    else:",
        "      sync()",
        "    end",
        "  end",
        "end",
        "run steelyard_receiver()",
    )
    return BeatScript(lines, "steelyard_received")


def report_in(register: float, number: int) -> ProgramReport | None:
    """The report of a program in the output register; None where another one has written it.

    Args:
        register: the value of the register
        number: the number of the program
    """
    program, rest = divmod(int(register), _NUMBER_UNIT)
    beat, stage = divmod(rest, _BEAT_UNIT)
    if program != number or stage not in set(MotionStage):
        return None
    return ProgramReport(MotionStage(stage), beat)


def payload_program(
    payload: ControllerPayload, *, transition_s: float, with_inertia: bool = True
) -> str:
    """The program that sets a payload beside the program that runs.

    Args:
        payload: the payload to set
        transition_s: time in which the controller changes over, [s]
        with_inertia: for controllers that accept it, from 5.10 on; otherwise mass and centre alone
    """
    mass = _decimal(payload.mass)
    cog = _decimals(payload.cog)
    call = f"set_payload({mass}, {cog})"
    if with_inertia:
        inertia = _decimals(payload.inertia)
        call = f"set_target_payload({mass}, {cog}, {inertia}, {_decimal(transition_s)})"
    return f"sec steelyard_payload():\n {call}\nend\n"


def motion_program(path: PathCommand, beat: BeatScript, *, number: int) -> str:
    """The program that moves the arm along a path while beats come, in place of the one that runs.

    Args:
        path: the path, and how the arm brakes
        beat: how the program receives the beat
        number: a number that tells this program from others, 1 to `MAX_PROGRAM_NUMBER`
    """
    first = _posture(path.q[0])
    lines = [
        "def steelyard_motion():",
        *_indented(beat.declarations),
        *_indented(_variables(first, path)),
        *_indented(_functions(path, beat, number)),
        *_indented(_start(path, beat)),
        *(f"  steelyard_follow({_posture(point)})" for point in path.q[1:]),
        *_indented(_finish(path)),
        "end",
        "",
    ]
    return "\n".join(lines)


def _variables(first: str, path: PathCommand) -> tuple[str, ...]:
    return (
        f"global steelyard_from = {first}",
        "global steelyard_place = 0.0",
        f"global steelyard_rate = {1 / path.steps_per_point:.9f}",
        "global steelyard_beat = 0",
        "global steelyard_received_beat = 0",
        "global steelyard_silence = 0",
        "global steelyard_reason = 0",
        f"global steelyard_stage = {MotionStage.MOVING:d}",
    )


def _functions(path: PathCommand, beat: BeatScript, number: int) -> tuple[str, ...]:
    """Functions that end the program, listen for the beat, and follow the path by one point."""
    silence = round(MAX_SILENCE_S * path.rate_hz)
    pace = 1 / (path.steps_per_point * path.braking_s * path.rate_hz)
    return (
        "def steelyard_report(stage):",
        f"  local value = {_NUMBER_UNIT * number} + {_BEAT_UNIT} * steelyard_received_beat + stage",
        f"  write_output_integer_register({STAGE_REGISTER}, value)",
        "end",
        "def steelyard_end(stage):",
        f"  stopj({_STOP_DECELERATION:g})",
        "  steelyard_report(stage)",
        "  halt",
        "end",
        "def steelyard_listen():",
        f"  local beat = {beat.expression}",
        "  if beat == steelyard_beat:",
        "    steelyard_silence = steelyard_silence + 1",
        "  else:",
        "    steelyard_silence = 0",
        "    steelyard_beat = beat",
        "    if beat > 0:",
        "      steelyard_received_beat = beat",
        "      steelyard_report(steelyard_stage)",
        "    end",
        "  end",
        "  if steelyard_reason == 0:",
        "    if beat < 0:",
        f"      steelyard_reason = {MotionStage.STOPPED:d}",
        f"    elif steelyard_silence > {silence}:",
        f"      steelyard_reason = {MotionStage.SILENCE:d}",
        "    end",
        "    if steelyard_reason > 0:",
        f"      steelyard_stage = {MotionStage.BRAKING:d}",
        "      steelyard_report(steelyard_stage)",
        "    end",
        "  else:",
        f"    steelyard_rate = steelyard_rate - {pace:.9f}",
        "    if steelyard_rate <= 0.0:",
        "      steelyard_end(steelyard_reason)",
        "    end",
        "  end",
        "end",
        "def steelyard_servo(a, b, s):",
        f"  local q = [{', '.join(f'a[{k}] + s * (b[{k}] - a[{k}])' for k in range(6))}]",
        f"  {_servo('q', path.rate_hz)}",
        "end",
        "def steelyard_follow(point):",
        "  while steelyard_place < 1.0:",
        "    steelyard_servo(steelyard_from, point, steelyard_place)",
        "    steelyard_listen()",
        "    steelyard_place = steelyard_place + steelyard_rate",
        "  end",
        "  steelyard_place = steelyard_place - 1.0",
        "  steelyard_from = point",
        "end",
    )


def _start(path: PathCommand, beat: BeatScript) -> tuple[str, ...]:
    """Lines that confirm probes, await the first beat, and compare the posture with the path."""
    wait = round(_MAX_START_WAIT_S * path.rate_hz)
    return (
        f"steelyard_report({MotionStage.WAITING:d})",
        f"steelyard_beat = {beat.expression}",
        f"while steelyard_received_beat < 1 or steelyard_received_beat > {LAST_BEAT}:",
        f"  steelyard_number = {beat.expression}",
        "  if steelyard_number == steelyard_beat:",
        "    steelyard_silence = steelyard_silence + 1",
        f"    if steelyard_silence > {wait}:",
        f"      steelyard_end({MotionStage.SILENCE:d})",
        "    end",
        "    sync()",
        "  elif steelyard_number < 0:",
        f"    steelyard_end({MotionStage.STOPPED:d})",
        "  else:",
        "    steelyard_silence = 0",
        "    steelyard_beat = steelyard_number",
        "    steelyard_received_beat = steelyard_number",
        f"    steelyard_report({MotionStage.WAITING:d})",
        "  end",
        "end",
        "steelyard_silence = 0",
        "steelyard_present = get_actual_joint_positions()",
        "steelyard_joint = 0",
        "while steelyard_joint < 6:",
        "  steelyard_away = steelyard_present[steelyard_joint] - steelyard_from[steelyard_joint]",
        f"  if steelyard_away > {_MAX_START_DISTANCE} or steelyard_away < -{_MAX_START_DISTANCE}:",
        f"    steelyard_end({MotionStage.ELSEWHERE:d})",
        "  end",
        "  steelyard_joint = steelyard_joint + 1",
        "end",
        "steelyard_report(steelyard_stage)",
    )


def _finish(path: PathCommand) -> tuple[str, ...]:
    """Lines that hold the last point until the servo has arrived."""
    return (
        "steelyard_held = 0",
        f"while steelyard_held < {round(_HOLD_S * path.rate_hz)}:",
        f"  {_servo('steelyard_from', path.rate_hz)}",
        "  steelyard_listen()",
        "  steelyard_held = steelyard_held + 1",
        "end",
        f"stopj({_END_DECELERATION:.1f})",
        f"steelyard_report({MotionStage.FINISHED:d})",
    )


def _servo(q: str, rate_hz: float) -> str:
    return f"servoj({q}, 0, 0, {1 / rate_hz:.6g}, {_LOOKAHEAD_S:g}, {_GAIN})"


def _indented(lines: Sequence[str]) -> Iterator[str]:
    return (f"  {line}" for line in lines)


def _posture(q: Array) -> str:
    return f"[{', '.join(f'{x:.6f}' for x in np.round(q, 6) + 0.0)}]"


def _decimal(value: float) -> str:
    if round(value, 9):
        return f"{value:.9f}".rstrip("0").rstrip(".")
    return "0"


def _decimals(values: Sequence[float]) -> str:
    return f"[{', '.join(map(_decimal, values))}]"
