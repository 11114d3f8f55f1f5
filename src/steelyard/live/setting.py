"""A payload written to a controller: proposed beside the one that it believes in, sent, and waited for.

The payload is part of a controller's model of the arm: a wrong one makes it drift in freedrive, and stop
where it should not or not where it should. So nothing is sent by itself, and a proposal is refused where an
export would be, above the arm's rating, while the arm moves, and in any mode but running and normal. The
controller gives no answer but its outputs: the echo is waited for.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from steelyard import saved
from steelyard.errors import InvalidInertia, SourceFailed
from steelyard.export import ErrorLimits, Export
from steelyard.live.script import Believed
from steelyard.live.source import Stream
from steelyard.live.ur import UrSource, ask_dashboard, ready_row, send_script
from steelyard.payload import Payload

_KIND = "payload setting"
_ECHO_S = 1.0
_TAKES_INERTIA = (5, 10)  # since this version
_RATINGS = {"UR3": 3, "UR5": 5, "UR7": 7.5, "UR8": 8, "UR10": 10, "UR12": 12.5, "UR15": 15, "UR16": 16}
_RATINGS |= {"UR18": 18, "UR20": 20, "UR30": 30, "UR10 of 5": 12.5}
_TOLERANCES = (1e-4, 1e-5, 1e-5)  # of mass [kg], centre [m] and inertia [kg m^2] in the echo


@dataclass(frozen=True)
class Proposal:
    """A payload for a controller, which was checked and not sent yet.

    Attributes:
        source: the controller
        old: what it believes in now
        new: what it shall believe in
        with_inertia: whether it takes an inertia; else mass and centre alone
    """

    source: UrSource
    old: Believed
    new: Believed
    with_inertia: bool = True

    @classmethod
    def of(
        cls,
        source: UrSource,
        payload: Payload,
        *,
        limits: ErrorLimits | None = None,
        rating_kg: float | None = None,
    ) -> Proposal:
        """What would be sent for a weighed payload, or a refusal.

        Args:
            source: the controller
            payload: what the arm carries, all of it, in the frame of the tool flange
            limits: how uncertain it may be; 10 % of the mass and 20 mm by default
            rating_kg: what the arm may carry, [kg]; by the kind of arm that the controller names, by default
        """
        export = Export.of(payload.as_load(), "ur", limits=limits)
        export.text()  # refuses what an export refuses
        body, load = export.load.body, export.load
        inertia = [*load.inertia_com[:3].clip(min=0.0), *load.inertia_com[3:]]
        new = Believed(body.mass, tuple(body.com.tolist()), tuple(float(x) for x in inertia))
        return cls.to(source, new, rating_kg=rating_kg)

    @classmethod
    def to(cls, source: UrSource, new: Believed, *, rating_kg: float | None = None) -> Proposal:
        """What would be sent to make a controller believe in some numbers, or a refusal by its state.

        Args:
            source: the controller
            new: what it shall believe in
            rating_kg: what the arm may carry, [kg]; by the kind of arm that the controller names, by default
        """
        with Stream(source) as stream:
            ready_row(stream)
            old = _believed_of(stream)
            version = stream.version
        rated = rating_kg or _rating(ask_dashboard(source, "get robot model"), version)
        if not rated:
            raise InvalidInertia(f"{source} does not say what the arm may carry: give its rating in kg")
        if new.mass > rated:
            raise InvalidInertia(f"{new.mass:.4g} kg is above what this arm may carry, {rated:g} kg")
        return cls(source, old, new, version >= _TAKES_INERTIA)

    def send(self, *, transition_s: float = 0.5) -> None:
        """Makes the controller believe in it, and waits until it says so; else a refusal.

        Args:
            transition_s: in which the controller changes over, [s]
        """
        with Stream(self.source) as stream:
            ready_row(stream)
            send_script(
                self.source, self.new.script(transition_s=transition_s, with_inertia=self.with_inertia)
            )
            end = time.monotonic() + _ECHO_S + transition_s
            while time.monotonic() < end:
                if _same(_believed_of(stream), self.new, with_inertia=self.with_inertia):
                    return
        raise SourceFailed(f"nothing happened: {self.source} still believes in {self.old.mass:.4g} kg")

    def save(self, path: str | Path) -> None:
        """Keeps both payloads, so that `undo` can put the old one back.

        Args:
            path: of the file (.json)
        """
        content = {"source": str(self.source), "old": self.old._asdict(), "new": self.new._asdict()}
        saved.save(content, _KIND, path)

    @classmethod
    def undo(cls, source: UrSource, path: str | Path) -> Proposal:
        """The proposal to put back what a controller believed in before, as `save` kept it.

        Args:
            source: the controller
            path: of the file
        """
        content = saved.load(path, _KIND)
        with saved.reading(path, _KIND):
            old, new, place = _believed(content["old"]), _believed(content["new"]), str(content["source"])
        if place != str(source):
            raise SourceFailed(f"{path} is of {place}, not of {source}")
        proposal = cls.to(source, old, rating_kg=float("inf"))
        if not _same(proposal.old, new, with_inertia=proposal.with_inertia):
            raise SourceFailed(
                f"{source} believes in {proposal.old.mass:.4g} kg now, not in the {new.mass:.4g} kg that were"
                " set: somebody else has changed it, and nothing is undone"
            )
        return proposal


def _believed_of(stream: Stream) -> Believed:
    """The payload that a controller believes in now.

    Args:
        stream: of its rows
    """
    said = dict(zip(stream.columns, stream.row().values, strict=True))
    if "payload_cog_0" not in said:
        raise SourceFailed(f"{stream.source} does not say which payload it believes in: it is too old")
    inertia = tuple(said.get(f"payload_inertia_{k}", 0.0) for k in range(6))
    return Believed(said["payload"], tuple(said[f"payload_cog_{k}"] for k in range(3)), inertia)


def _rating(model: str, version: tuple[int, ...]) -> float:
    """What an arm may carry, [kg], by what the dashboard calls it; 0 where that is not known."""
    newer = f"{model} of 5" if version and version[0] >= 5 else model
    return float(_RATINGS.get(newer, _RATINGS.get(model, 0.0)))


def _same(one: Believed, other: Believed, *, with_inertia: bool) -> bool:
    pairs = list(zip(one, other, _TOLERANCES, strict=True))[: 3 if with_inertia else 2]
    return all(bool(np.abs(np.array(x) - np.array(y)).max() <= close) for x, y, close in pairs)


def _believed(content: dict[str, Any]) -> Believed:
    return Believed(float(content["mass"]), tuple(content["cog"]), tuple(content["inertia"]))
