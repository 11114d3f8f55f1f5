"""A payload for a controller: checked, shown beside the present one, set on request, restored.

The payload is part of a controller's model of the arm: a wrong one makes the arm drift in
freedrive, and stop when it should not or fail to stop when it should. Therefore nothing is sent
without a request. A proposal is refused where an export would be refused, above the rating of the
arm, while the arm moves, and in any mode but running with normal safety.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from steelyard import fields, saved
from steelyard.errors import InvalidInertia, SourceFailed
from steelyard.export import ErrorLimits, Export
from steelyard.live._controller import Controller, ControllerPayload, controller_of
from steelyard.live._source import Source
from steelyard.payload import Payload

_KIND = "payload setting"
_PAYLOAD_FIELDS = fields.table(
    {"mass": fields.number(0.0), "cog": fields.numbers(3), "inertia": fields.numbers(6)}
)
_QUANTITIES = (
    ("mass", "kg"),
    ("centre of gravity x", "mm"),
    ("centre of gravity y", "mm"),
    ("centre of gravity z", "mm"),
    ("Ixx", "kg m^2"),
    ("Iyy", "kg m^2"),
    ("Izz", "kg m^2"),
    ("Ixy", "kg m^2"),
    ("Ixz", "kg m^2"),
    ("Iyz", "kg m^2"),
)


@dataclass(frozen=True)
class Proposal:
    """A payload for a controller that was checked and not sent yet.

    Attributes:
        controller: the controller
        old: the payload set on it now; None where it does not report one
        new: the payload to set
        with_inertia: whether it accepts an inertia; otherwise mass and centre alone
        note: what a user should know before setting it; may be empty
    """

    controller: Controller
    old: ControllerPayload | None
    new: ControllerPayload
    with_inertia: bool = True
    note: str = ""

    @classmethod
    def of(
        cls,
        source: Source,
        payload: Payload,
        *,
        limits: ErrorLimits | None = None,
        rating_kg: float | None = None,
    ) -> Proposal:
        """The proposal to set a weighed payload.

        Args:
            source: the controller
            payload: the whole payload of the arm, in the frame of the tool flange; for a Franka arm
                without the end effector that its controller knows
            limits: largest uncertainty; 10 % of the mass and 20 mm by default
            rating_kg: largest payload of the arm, [kg]; as the controller reports it by default

        Raises:
            InvalidInertia: the payload must not be exported, or is above the rating
            SourceFailed: there is no controller, or it is not ready
        """
        controller = controller_of(source)
        export = Export.of(payload.as_load(), controller.export_format, limits=limits)
        export.text()  # raises where the payload must not be exported
        body = export.load.body
        moments = export.load.inertia_com[:3].clip(min=0.0)
        products = export.load.inertia_com[3:]
        inertia = tuple(float(x) for x in (*moments, *products))
        new = ControllerPayload(body.mass, tuple(body.com.tolist()), inertia)
        return cls.to(controller, new, rating_kg=rating_kg)

    @classmethod
    def to(
        cls, controller: Controller, new: ControllerPayload, *, rating_kg: float | None = None
    ) -> Proposal:
        """The proposal to set given numbers; raises where the controller is not ready.

        Args:
            controller: the controller
            new: the payload to set
            rating_kg: largest payload of the arm, [kg]; as the controller reports it by default
        """
        status = controller.status()
        rating = rating_kg or status.rating_kg
        if not rating:
            raise InvalidInertia(
                f"{controller} does not report the rating of the arm: give its rating in kg"
            )
        if new.mass > rating:
            raise InvalidInertia(
                f"{new.mass:.4g} kg is above the rating of this arm, {rating:.4g} kg"
            )
        return cls(controller, status.payload, new, status.takes_inertia, status.note)

    @property
    def cells(self) -> tuple[tuple[str, str, str, str], ...]:
        """Name, old value, new value and unit of each number, for a table."""
        if self.old is None:
            old = ["not reported"] * len(_QUANTITIES)
        else:
            old = _texts(self.old)
        rows = zip(_QUANTITIES, old, _texts(self.new), strict=True)
        return tuple((name, before, after, unit) for (name, unit), before, after in rows)

    def send(self, *, transition_s: float = 0.5) -> str:
        """Sets the payload and waits for the confirmation; raises `SourceFailed` without one.

        Args:
            transition_s: time in which the controller changes over, [s], where it can do that

        Returns:
            the controller's confirmation, in words
        """
        return self.controller.set_payload(
            self.new, transition_s=transition_s, with_inertia=self.with_inertia
        )

    def save(self, path: str | Path) -> None:
        """Saves both payloads, so that `undo` can restore the old one.

        Args:
            path: file to write (.json)
        """
        if self.old is None:
            raise _not_restorable(self.controller)
        content = {
            "source": str(self.controller),
            "old": self.old._asdict(),
            "new": self.new._asdict(),
        }
        saved.save(content, _KIND, path)

    @classmethod
    def undo(cls, source: Source, path: str | Path) -> Proposal:
        """The proposal to restore the payload that a controller had before.

        Args:
            source: the controller
            path: file that `save` wrote
        """
        controller = controller_of(source)
        if not controller.capabilities.reports_payload:
            raise _not_restorable(controller)
        content = saved.load(path, _KIND)
        with saved.reading(path, _KIND):
            fields.check(
                content,
                {"source": fields.TEXT, "old": _PAYLOAD_FIELDS, "new": _PAYLOAD_FIELDS},
            )
            old = _payload_of(content["old"])
            new = _payload_of(content["new"])
            address = str(content["source"])
        if address != str(controller):
            raise SourceFailed(f"{path} is of {address}, not of {controller}")
        proposal = cls.to(controller, old, rating_kg=float("inf"))
        present = proposal.old
        if present and not present.is_close(new, with_inertia=proposal.with_inertia):
            raise SourceFailed(
                f"{controller} reports {present.mass:.4g} kg now, not the {new.mass:.4g} kg that"
                " were set: the payload was changed meanwhile, and nothing is restored"
            )
        return proposal


def _not_restorable(controller: Controller) -> SourceFailed:
    return SourceFailed(f"{controller} does not report its payload: nothing can be restored")


def _texts(payload: ControllerPayload) -> list[str]:
    """The ten numbers of a payload in the units of `_QUANTITIES`, as texts."""
    numbers = [payload.mass, *(1e3 * x for x in payload.cog), *payload.inertia]
    return [f"{x:.4f}" for x in numbers]


def _payload_of(content: dict[str, Any]) -> ControllerPayload:
    mass = float(content["mass"])
    return ControllerPayload(mass, tuple(content["cog"]), tuple(content["inertia"]))
