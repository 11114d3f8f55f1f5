"""A payload written to a controller: proposed beside the one that it believes in, sent, and waited for.

The payload is part of a controller's model of the arm: a wrong one makes it drift in freedrive, and
stop where it should not or not where it should. So nothing is sent by itself, and a proposal is
refused where an export would be, above the arm's rating, while the arm moves, and in any mode but
running and normal. The controller gives no answer but its outputs: the echo is waited for.

A UR takes a program (`sec`), a Franka arm libfranka's `set_load`. Under ROS 2 it is the service
`set_payload` of the UR driver, which answers whether it was done; no topic says which payload the
controller believes in, so there is neither an old one to show nor one to put back.
"""

from __future__ import annotations

import struct
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from steelyard import fields, saved
from steelyard.errors import InvalidInertia, SourceFailed
from steelyard.export import ErrorLimits, Export
from steelyard.live._controller import ControllerPayload
from steelyard.live._foxglove import Service
from steelyard.live._franka import RATING_KG, FrankaConnection, FrankaSource
from steelyard.live._ros2 import Ros2Source
from steelyard.live._source import Source, Stream
from steelyard.live._ur import (
    AT_REST,
    SAFETY_MODES,
    UrSource,
    ask_dashboard,
    ready_row,
    send_script,
)
from steelyard.payload import Payload

_KIND = "payload setting"
_ECHO_S = 1.0
_TAKES_INERTIA = (5, 10)  # since this version
_RATINGS = {
    "UR3": 3,
    "UR5": 5,
    "UR7": 7.5,
    "UR8": 8,
    "UR10": 10,
    "UR12": 12.5,
    "UR15": 15,
    "UR16": 16,
}
_RATINGS |= {"UR18": 18, "UR20": 20, "UR30": 30, "UR10 of 5": 12.5}
_BELIEVED = fields.table(
    {"mass": fields.number(0.0), "cog": fields.numbers(3), "inertia": fields.numbers(6)}
)
_TOLERANCES = (1e-4, 1e-5, 1e-5)  # of mass [kg], centre [m] and inertia [kg m^2] in the echo
_SILENT = "does not say which payload it believes in"
_SERVICE = "SetPayload"  # as the kinds of services end
_CDR = b"\0\1\0\0"  # before every message: little-endian
_PLAIN = ("float32 mass", "geometry_msgs/Vector3 center_of_gravity")
_REQUESTS = (
    _PLAIN,
    ("geometry_msgs/Inertia payload", "float64 transition_time"),
    ("geometry_msgs/Inertia inertia",),
)
"""Fields of a request of the UR driver's service, in its versions."""


class _Known(NamedTuple):
    """What a controller that is ready says of itself.

    Attributes:
        old: what it believes in; None where it does not say
        rating_kg: what it may carry, [kg]; 0 where it does not say
        with_inertia: whether it takes an inertia
        note: what one should know before setting
    """

    old: ControllerPayload | None
    rating_kg: float = 0.0
    with_inertia: bool = True
    note: str = ""


@dataclass(frozen=True)
class Proposal:
    """A payload for a controller, which was checked and not sent yet.

    Attributes:
        source: the controller
        old: what it believes in now; None where it does not say
        new: what it shall believe in
        with_inertia: whether it takes an inertia; else mass and centre alone
        note: what one should know before setting; may be empty
    """

    source: Source
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
        """What would be sent for a weighed payload, or a refusal.

        Args:
            source: the controller
            payload: what the arm carries, all of it, in the frame of the tool flange; for a Franka
                arm without the end effector that its controller knows
            limits: how uncertain it may be; 10 % of the mass and 20 mm by default
            rating_kg: what the arm may carry, [kg]; by the kind of arm that the controller names,
                by default
        """
        export = Export.of(payload.as_load(), _target(source), limits=limits)
        export.text()  # refuses what an export refuses
        body = export.load.body
        load = export.load
        inertia = [*load.inertia_com[:3].clip(min=0.0), *load.inertia_com[3:]]
        new = ControllerPayload(
            body.mass, tuple(body.com.tolist()), tuple(float(x) for x in inertia)
        )
        return cls.to(source, new, rating_kg=rating_kg)

    @classmethod
    def to(
        cls, source: Source, new: ControllerPayload, *, rating_kg: float | None = None
    ) -> Proposal:
        """What would be sent to make a controller believe in some numbers, or a refusal by its state.

        Args:
            source: the controller
            new: what it shall believe in
            rating_kg: what the arm may carry, [kg]; by the kind of arm that the controller names,
                by default
        """
        known = _known(source)
        rated = rating_kg or known.rating_kg
        if not rated:
            raise InvalidInertia(
                f"{source} does not say what the arm may carry: give its rating in kg"
            )
        if new.mass > rated:
            raise InvalidInertia(
                f"{new.mass:.4g} kg is above what this arm may carry, {rated:.4g} kg"
            )
        return cls(source, known.old, new, known.with_inertia, known.note)

    @staticmethod
    def takes_payloads(source: Source) -> bool:
        """Whether a controller can be given a payload while its rows are read; Franka's has one client."""
        return isinstance(source, UrSource | Ros2Source)

    @property
    def cells(self) -> tuple[tuple[str, str, str, str], ...]:
        """Name, old value, new value and unit of each number, for a table."""
        names = [
            "mass",
            *(f"centre of gravity {x}" for x in "xyz"),
            "Ixx",
            "Iyy",
            "Izz",
            "Ixy",
            "Ixz",
            "Iyz",
        ]
        units = ["kg", *["mm"] * 3, *["kg m^2"] * 6]
        numbers = [
            [x.mass, *(1e3 * c for c in x.cog), *x.inertia]
            for x in (self.old or self.new, self.new)
        ]
        rows = zip(names, *numbers, units, strict=True)
        texts = ((name, f"{old:.4f}", f"{new:.4f}", unit) for name, old, new, unit in rows)
        return tuple((x[0], x[1] if self.old else "not said", x[2], x[3]) for x in texts)

    def send(self, *, transition_s: float = 0.5) -> str:
        """Makes the controller believe in it, and waits until it says so; else a refusal.

        Args:
            transition_s: in which the controller changes over, [s], where it can do that

        Returns:
            what the controller says then, in words
        """
        match self.source:
            case UrSource():
                self._send_ur(self.source, transition_s)
            case FrankaSource():
                self._send_franka(self.source)
            case Ros2Source():
                return self._send_ros2(self.source, transition_s)
        return f"the controller says that it believes in {self.new.mass:.3f} kg"

    def _send_ur(self, source: UrSource, transition_s: float) -> None:
        with Stream(source) as stream:
            ready_row(stream)
            send_script(
                source, self.new.script(transition_s=transition_s, with_inertia=self.with_inertia)
            )
            self._wait(stream, transition_s)

    def _send_franka(self, source: FrankaSource) -> None:
        xx, yy, zz, xy, xz, yz = self.new.inertia
        with Stream(source) as stream:
            _require_rest(stream)
            if isinstance(stream.connection, FrankaConnection):
                inertia = (xx, xy, xz, xy, yy, yz, xz, yz, zz)
                stream.connection.set_load(self.new.mass, self.new.cog, inertia)
            self._wait(stream)

    def _send_ros2(self, source: Ros2Source, transition_s: float) -> str:
        with Stream(source) as stream:
            _require_rest(stream)
        connection = source.connect()
        try:
            service = connection.service(_SERVICE)
            answer = connection.call(service, _request(service, self.new, transition_s))
        finally:
            connection.close()
        if not answer[len(_CDR) :].strip(b"\0"):
            raise SourceFailed(
                f"nothing happened: {service.name} of {source} says that it was not set"
            )
        return (
            f"{service.name} says that {self.new.mass:.3f} kg were set; nothing says what is"
            " believed in"
        )

    def _wait(self, stream: Stream, transition_s: float = 0.0) -> None:
        """Waits for the echo."""
        end = time.monotonic() + _ECHO_S + transition_s
        while time.monotonic() < end:
            if _same(_believed_of(stream), self.new, with_inertia=self.with_inertia):
                return
        if self.old is not None:
            mass = self.old.mass
        else:
            mass = float("nan")
        raise SourceFailed(f"nothing happened: {self.source} still believes in {mass:.4g} kg")

    def save(self, path: str | Path) -> None:
        """Keeps both payloads, so that `undo` can put the old one back.

        Args:
            path: of the file (.json)
        """
        if self.old is None:
            raise SourceFailed(f"{self.source} {_SILENT}: nothing can be put back")
        content = {"source": str(self.source), "old": self.old._asdict(), "new": self.new._asdict()}
        saved.save(content, _KIND, path)

    @classmethod
    def undo(cls, source: Source, path: str | Path) -> Proposal:
        """The proposal to put back what a controller believed in before, as `save` kept it.

        Args:
            source: the controller
            path: of the file
        """
        if isinstance(source, Ros2Source):
            raise SourceFailed(f"{source} {_SILENT}: nothing can be put back")
        content = saved.load(path, _KIND)
        with saved.reading(path, _KIND):
            fields.check(content, {"source": fields.TEXT, "old": _BELIEVED, "new": _BELIEVED})
            old = _believed(content["old"])
            new = _believed(content["new"])
            place = str(content["source"])
        if place != str(source):
            raise SourceFailed(f"{path} is of {place}, not of {source}")
        proposal = cls.to(source, old, rating_kg=float("inf"))
        if proposal.old and not _same(proposal.old, new, with_inertia=proposal.with_inertia):
            raise SourceFailed(
                f"{source} believes in {proposal.old.mass:.4g} kg now, not in the {new.mass:.4g}"
                " kg that were"
                " set: somebody else has changed it, and nothing is undone"
            )
        return proposal


def _target(source: Source) -> str:
    """The format of an export whose rules hold for a controller."""
    if isinstance(source, UrSource | Ros2Source):
        return "ur"
    if isinstance(source, FrankaSource):
        return "franka-ros2"
    raise SourceFailed(
        f"{source} cannot be commanded: give ur://HOST, ros2://HOST or franka://HOST"
    )


def _known(source: Source) -> _Known:
    """What a controller says of itself, or a refusal where it is not ready."""
    with Stream(source) as stream:
        if isinstance(source, UrSource):
            ready_row(stream)
            rating = _rating(ask_dashboard(source, "get robot model"), stream.version)
            return _Known(_believed_of(stream), rating, stream.version >= _TAKES_INERTIA)
        said = _require_rest(stream)
        if not isinstance(source, Ros2Source):
            own = said["m_ee"]
            note = f"the end effector of {own:.3f} kg that the controller knows counts besides"
            return _Known(_believed_of(stream), RATING_KG - own, note=note)
    connection = source.connect()
    try:
        service = connection.service(_SERVICE)
    finally:
        connection.close()
    note = f"{source} {_SILENT}, and the old one cannot be put back"
    return _Known(None, with_inertia=_fields(service) != _PLAIN, note=note)


def _require_rest(stream: Stream) -> dict[str, float]:
    """What an arm says that stands, in normal modes; or a refusal."""
    row = stream.row()
    said = dict(zip(stream.columns, row.values, strict=True))
    if isinstance(stream.source, Ros2Source) and "safety_mode" not in said:
        raise SourceFailed(
            f"{stream.source} does not say in which mode the arm is:"
            " robot_mode and safety_mode of a UR driver are not there"
        )
    safety = int(said.get("safety_mode", 1))
    if row.waiting or safety != 1:
        why = row.waiting or f"its safety mode is {SAFETY_MODES.get(safety, safety)}, not normal"
        raise SourceFailed(f"{stream.source} is not ready: {why}")
    speeds = [
        abs(x) for name, x in said.items() if name.startswith(("dq_", "v.")) and "_d_" not in name
    ]
    if not speeds or max(speeds) > AT_REST:
        if speeds:
            speed = f"{max(speeds):.2g} rad/s"
        else:
            speed = "nothing says how fast"
        raise SourceFailed(f"{stream.source} moves ({speed}): stop the arm first")
    return said


def _believed_of(stream: Stream) -> ControllerPayload:
    """The payload that a controller believes in now."""
    found = ControllerPayload.of(dict(zip(stream.columns, stream.row().values, strict=True)))
    if found is None:
        raise SourceFailed(f"{stream.source} {_SILENT}: it is too old")
    return found


def _fields(service: Service) -> tuple[str, ...]:
    """The fields of a request, of a kind that is known; or a refusal."""
    fields = tuple(line.replace("/msg/", "/") for line in service.fields)
    if fields not in _REQUESTS:
        raise SourceFailed(f"{service.name} takes {', '.join(fields)}: such a driver is not known")
    return fields


def _request(service: Service, new: ControllerPayload, transition_s: float) -> bytes:
    """The bytes of a request to set a payload."""
    if (fields := _fields(service)) == _PLAIN:
        return _CDR + struct.pack("<f4x3d", new.mass, *new.cog)
    xx, yy, zz, xy, xz, yz = new.inertia
    more = [transition_s] * (len(fields) - 1)
    return _CDR + struct.pack(
        f"<{10 + len(more)}d", new.mass, *new.cog, xx, xy, xz, yy, yz, zz, *more
    )


def _rating(model: str, version: tuple[int, ...]) -> float:
    """What an arm may carry, [kg], by what the dashboard calls it; 0 where that is not known."""
    if version and version[0] >= 5:
        newer = f"{model} of 5"
    else:
        newer = model
    return float(_RATINGS.get(newer, _RATINGS.get(model, 0.0)))


def _same(one: ControllerPayload, other: ControllerPayload, *, with_inertia: bool) -> bool:
    pairs = list(zip(one, other, _TOLERANCES, strict=True))[: 3 if with_inertia else 2]
    return all(bool(np.abs(np.array(x) - np.array(y)).max() <= close) for x, y, close in pairs)


def _believed(content: dict[str, Any]) -> ControllerPayload:
    return ControllerPayload(
        float(content["mass"]), tuple(content["cog"]), tuple(content["inertia"])
    )
