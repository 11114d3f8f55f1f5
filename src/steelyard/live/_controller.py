"""A payload as a controller holds it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple


class ControllerPayload(NamedTuple):
    """A payload as a controller holds it.

    Attributes:
        mass: [kg]
        cog: centre of gravity, (3,) [m], from the tool flange
        inertia: xx, yy, zz, xy, xz, yz about the centre of gravity, (6,) [kg m^2], axes of the
            flange
    """

    mass: float = 0.0
    cog: tuple[float, ...] = (0.0, 0.0, 0.0)
    inertia: tuple[float, ...] = (0.0,) * 6

    @classmethod
    def of(cls, said: Mapping[str, float]) -> ControllerPayload | None:
        """What a controller says that it believes in; None where it does not say.

        Args:
            said: one row of its outputs, by RTDE's names or libfranka's
        """
        if "m_load" in said:
            inertia = tuple(said[f"I_load_{k}"] for k in (0, 4, 8, 1, 2, 5))
            return cls(said["m_load"], tuple(said[f"F_x_Cload_{k}"] for k in range(3)), inertia)
        if "payload_cog_0" not in said:
            return None
        inertia = tuple(said.get(f"payload_inertia_{k}", 0.0) for k in range(6))
        return cls(said["payload"], tuple(said[f"payload_cog_{k}"] for k in range(3)), inertia)

    def script(self, *, transition_s: float, with_inertia: bool = True) -> str:
        """The program that makes a controller believe in it, beside the one that runs.

        Args:
            transition_s: in which the controller changes over, [s]
            with_inertia: for controllers that take it, from 5.10 on; else mass and centre alone
        """
        call = f"set_payload({_text(self.mass)}, {_list(self.cog)})"
        if with_inertia:
            numbers = (
                f"{_text(self.mass)}, {_list(self.cog)}, {_list(self.inertia)},"
                f" {_text(transition_s)}"
            )
            call = f"set_target_payload({numbers})"
        return f"sec steelyard_payload():\n {call}\nend\n"


def _text(value: float) -> str:
    if round(value, 9):
        return f"{value:.9f}".rstrip("0").rstrip(".")
    return "0"


def _list(values: Sequence[float]) -> str:
    return f"[{', '.join(map(_text, values))}]"
