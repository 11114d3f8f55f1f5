"""Writes the page of all kinds of doubts: python docs/doubts.py.

Kinds and meanings are those of `steelyard/verdict.py`, messages those of the sources.
"""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from steelyard.verdict import DoubtKind

DOCS = Path(__file__).parent
PAGE = DOCS / "reference" / "doubts.md"
SOURCE = DOCS.parent / "src" / "steelyard"
WIDTH = 120  # characters
MIN_WORDS = 4  # of a message beside the values in it
VALUE = "..."

HEAD = """\
# Doubts

Every answer judges itself: `payload.verdict`, `model.verdict`. A doubt is one thing that counts
against it. It has a `kind`, listed here, and `words` that name the cause with its numbers. A doubt
that blocks forbids the use of what it `concerns` (mass, centre of mass, inertia): the command ends
with exit code 1, and `export` writes no file. Any other doubt is worth knowing. `doubt.blocks` says
which it is.

`...` in a message stands for a value. Messages that consist of values only are left out.
[What you can trust](../explanation/trust.md) explains how doubts are found.

<!-- written by docs/doubts.py -->
"""

REMEDIES = {
    "not_excited": "Swing every joint that carries the payload, the wrist most of all, so that the"
    " flange tilts. `steelyard design` finds such a motion. Or give what you know: `weigh --fix"
    " inertia=0`. Some arms can never show some numbers; the message says so.",
    "nothing_carried": "If the arm is empty, this is the right answer. If not, move more or longer,"
    " give `--empty` with the same motion, or improve the gains: the load is smaller than the"
    " interval.",
    "negative_mass": "Exchange the recordings if empty and loaded were mixed up. With a wrist"
    " sensor, check `load_on_sensor` and `sensor_on_load`.",
    "implausible": "Check units (Nm, A, degrees), signs and scale of the readings, and the name of"
    " the arm.",
    "not_physical": "Look at the residuals in the report: a contact, a cable or another arm in the"
    " recording. If only the inertia is concerned, mass and centre of mass can be used.",
    "not_converged": "While tracking: keep moving, as the advice says. For friction shapes: move at"
    " slower and faster speeds, or name a simpler `--friction`.",
    "stopped": "Run the command again without interrupting it or with a longer `--time-limit`, if"
    " the difference matters.",
    "contradicts_model": "Record empty and loaded again on the same day, after warming up, with the"
    " same cables and gripper. In a fleet, the arm has changed: check its payload setting and"
    " its drives.",
    "contradicts_given": "Check the number that you gave (`--fix`) and its unit; for hand guiding,"
    " the payload of the controller.",
    "unexplained_torque": "Check gravity, signs, gains and whether this is the stated robot; then"
    " whether something touched the arm.",
    "does_not_predict": "Record a longer, faster and wider motion, or several. Check that both"
    " recordings are of the same arm.",
    "configured_payload": "Set the weighed payload on the controller (`steelyard set-payload`),"
    " with that of the tool if the empty arm carried one.",
    "other_robot": "Give the robot and the model of the recorded arm.",
    "tilted_base": "Level the base, or state the gravity that the message names ([direction of"
    " gravity](../howto/gravity.md)).",
    "gravity": "State the [direction of gravity](../howto/gravity.md). If the direction is right,"
    " check the clock of the recording: a wrong rate changes accelerations, not weights.",
    "steady_force": "Free the arm of hoses, cables and contacts, and record again. Check how the"
    " base is mounted.",
    "load_changed": "Cut the recording to the time in which the load was the same, or use"
    " `steelyard track` or `picks`.",
    "torque_scale": "Check whether gains, units, the arm or its load differ between the runs."
    " Record empty and loaded on the same day.",
    "negative_friction": "Move slower and faster, or name another `--friction`. Do not use the"
    " friction outside the recorded speeds.",
    "friction_shape": "Move at more different speeds, or name a simpler `--friction`.",
    "model_doubted": "Resolve the doubts of the model first: they follow in the message. Then weigh"
    " again.",
    "prepared_otherwise": "Leave out `--cutoff` and `--kinematics` when weighing, so that those of"
    " the model are used.",
    "recording": "Run `steelyard check` on the file. Record again if the message concerns much of"
    " it.",
    "noisy_motion": "Identify and weigh with `--cutoff auto`.",
    "gains": "See [torques from motor currents](../howto/motor_currents.md). An independent check"
    " is a run with a known mass: `identify --gains mass=KG:FILE`.",
    "postures_too_alike": "Add the postures that the message asks for; `steelyard postures` finds"
    " good ones.",
    "no_zero": "Let the arm rest for a moment without contact, before or during the work.",
    "drift_moves": "Let sensor and arm warm up, then measure or weigh again; zero the sensor"
    " shortly before use.",
    "too_uncertain": "Weigh for longer, repeat the motion of an empty run (`--empty`), or allow"
    " more on export (`--largest-mass-error`).",
    "unknown_friction": "Identify the arm with a motion that moves these joints, and use that"
    " model.",
    "beyond_learned": "Let the detector learn from motion that is as fast and as far as the one to"
    " watch.",
    "mostly_contact": "Give the payload that the arm carries, and the model of this arm; check sign"
    " and unit of the torques. While tracking, let go of the load.",
    "assumed": "Give the real value where you have it, for example an identified model (`--model`)."
    " If you stated `--trust effort=torque`, make sure that the driver does publish torques.",
    "not_checked": "Add the missing limits or the surroundings to the `--limits` file"
    " ([design](../howto/design.md)), or check them yourself before the arm moves.",
    "too_short": "Record longer.",
}
"""What to do about each kind of doubt."""


class Message(NamedTuple):
    """A doubt in the sources: its kind, whether it can block, and its texts."""

    kind: str
    can_block: bool
    texts: tuple[str, ...]


def meanings() -> dict[str, str]:
    """The comment of each kind in the enumeration."""
    source = (SOURCE / "verdict.py").read_text()
    return dict(re.findall(r'^    [A-Z_]+ = "(\w+)"  # (.*)$', source, re.MULTILINE))


def text_of(node: ast.expr) -> str:
    """The text of a string expression, with a mark for each value; empty for other expressions."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(
            str(part.value) if isinstance(part, ast.Constant) else VALUE for part in node.values
        ).replace(2 * VALUE, VALUE)
    return ""


def messages() -> Iterator[Message]:
    """Every doubt that the sources make."""
    for path in sorted(SOURCE.rglob("*.py")):
        tree = ast.parse(path.read_text())
        nodes = sorted(
            (node for node in ast.walk(tree) if is_doubt(node) or is_function(node)),
            key=lambda node: node.lineno,
        )
        assigned = [node for node in ast.walk(tree) if is_assignment(node)]
        for before, call in pairwise([tree, *nodes]):
            if isinstance(call, ast.Call) and isinstance(call.args[0], ast.Attribute):
                start = getattr(before, "lineno", 0)
                near = [each for each in assigned if start <= each.lineno <= call.lineno]
                yield message(call, near)


def message(call: ast.Call, assigned: list[ast.Assign]) -> Message:
    """A doubt, with the assignments before it, one of which may hold its text."""
    words = call.args[1]
    texts = [text_of(words)] if text_of(words) else []
    if isinstance(words, ast.Name):
        texts = [text_of(each.value) for each in assigned if each.targets[0].id == words.id]
    never = any(k.arg == "blocks" and ast.unparse(k.value) == "False" for k in call.keywords)
    shown = (text for text in texts if len(re.findall(r"[a-z]{2,}", text)) >= MIN_WORDS)
    return Message(call.args[0].attr.lower(), not never, tuple(shown))


def is_doubt(node: ast.AST) -> bool:
    """Whether a node makes a doubt."""
    return isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Doubt"


def is_function(node: ast.AST) -> bool:
    """Whether a node is a function."""
    return isinstance(node, ast.FunctionDef)


def is_assignment(node: ast.AST) -> bool:
    """Whether a node gives a value to one variable."""
    return isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)


def section(kind: str, meaning: str, found: list[Message]) -> list[str]:
    """Heading, meaning, remedy and messages of one kind."""
    blocks = "It can block." if any(each.can_block for each in found) else "It never blocks."
    first = f"{meaning[0].upper()}{meaning[1:]}. {blocks}"
    texts = dict.fromkeys(text for each in found for text in each.texts)
    lines = [f"## {kind}", "", *wrapped(first), "", *wrapped(f"**What to do.** {REMEDIES[kind]}")]
    if texts:
        lines += ["", "Messages:", ""]
    for text in texts:
        lines += wrapped(f"- {text}", indent="  ")
    return [*lines, ""]


def wrapped(text: str, indent: str = "") -> list[str]:
    """The lines of a paragraph or of an item of a list."""
    return textwrap.wrap(text, WIDTH, subsequent_indent=indent, break_on_hyphens=False)


def page() -> str:
    """The whole page."""
    every = list(messages())
    comments = meanings()
    lines = [HEAD]
    for kind in map(str, DoubtKind):
        lines += section(kind, comments[kind], [each for each in every if each.kind == kind])
    return "\n".join(lines)


if __name__ == "__main__":
    PAGE.write_text(page())
