"""`steelyard weigh MODEL RECORDING...`: what the arm carries."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from steelyard.cli.identify import prepared_from
from steelyard.cli.output import JsonFlag, print_json, print_table

if TYPE_CHECKING:
    from steelyard.payload import Payload

__all__ = ["command"]


def command(
    model: Annotated[Path, typer.Argument(help="The identified empty arm (.json, from steelyard identify).")],
    recordings: Annotated[list[Path], typer.Argument(help="Recordings of the loaded arm.")],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Where the payload goes (.json).")
    ] = None,
    fix: Annotated[
        list[str] | None, typer.Option(help="A number that is known, as mass=2.8; may be repeated.")
    ] = None,
    cutoff: Annotated[float, typer.Option(help="Of the filter on the motion [Hz].")] = 10.0,
    picture: Annotated[Path | None, typer.Option(help="Where a picture goes (.png).")] = None,
    as_json: JsonFlag = False,
) -> None:
    """Weighs what the arm carries beyond the model. Exit code 1 when the answer is not to be trusted."""
    from steelyard.io import read_recording
    from steelyard.io.models import load_model, save_payload
    from steelyard.payload import weigh
    from steelyard.signals import Preparation

    arm = load_model(model)
    how = Preparation(cutoff_hz=cutoff, kinematics=arm.kinematics)
    parts = []
    for path in recordings:
        recording = read_recording(path)
        gain = None if recording.tau is not None else arm.robot.drive.gain
        parts.append(prepared_from(path, recording, how, gain))
    payload = weigh(arm, parts, fixed=_fixed(fix or []))
    if output is not None:
        save_payload(payload, output)
    if picture is not None:
        from steelyard.report import payload_picture

        payload_picture(picture, arm, payload, parts[0], truth=None)
    if as_json:
        print_json(_facts(payload, output))
    else:
        print_table(
            "What the arm carries (95 % intervals)", ("", "weighed", "+-", "unit"), payload_rows(payload)
        )
        print(f"\n{payload.status[0].upper()}{payload.status[1:]}.")
    if np.isinf(payload.std).any() or "do not trust" in payload.status:
        raise typer.Exit(1)


def payload_rows(payload: Payload) -> list[tuple[str, ...]]:
    """The mass, the centre of mass and the inertia with intervals, as cells of a table.

    Args:
        payload: what was weighed
    """
    from steelyard.inertia import PARAMETER_NAMES

    rows = [("mass", payload.body.mass, payload.std[0], "kg")]
    for i, axis in enumerate("xyz"):
        rows.append((f"centre of mass {axis}", 1e3 * payload.body.com[i], 1e3 * payload.com_std[i], "mm"))
    for i in range(4, 10):
        name = f"{PARAMETER_NAMES[i]} about the flange"
        rows.append((name, payload.body.vector[i], payload.std[i], "kg m^2"))
    return [(name, f"{x:.4f}", f"{1.96 * std:.4f}", unit) for name, x, std, unit in rows]


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


def _facts(payload: Payload, output: Path | None) -> dict[str, Any]:
    return {
        "mass": payload.body.mass,
        "mass_std": payload.std[0],
        "com": payload.body.com,
        "com_std": payload.com_std,
        "vector": payload.body.vector,
        "unconstrained": payload.unconstrained.vector,
        "std": payload.std,
        "covariance": payload.covariance,
        "frame": payload.body.frame,
        "noise": payload.noise,
        "status": payload.status,
        "file": None if output is None else str(output),
    }
