"""The live page: the arm in 3D, the payload with its intervals, curves over time, events, a button.

viser serves the page, to this machine only unless another host is given, and needs no network. The
weighing thread hands over its newest `Snapshot`; another thread draws it, at most 30 times a second
in 3D, ten times as text, four times as plots, and not at all without a connected browser
(`_page_process` runs the page in a process of its own, so that rows do not wait for plots). The
page can set the payload, on this machine's own address only, and asks before anything is sent. It
can stop the arm at every address, because a phone must be able to do that, too. Buttons answer only
to the page itself, as other websites in the same browser could reach the port.
"""

from __future__ import annotations

import contextlib
import io
import math
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

import numpy as np

from steelyard._arrays import Array
from steelyard.drawing import Curve, Panel, Plot
from steelyard.errors import MissingExtra, SourceFailed, SteelyardError
from steelyard.live._controller import Controller
from steelyard.live._curves import LiveChart
from steelyard.live._page_access import THIS_MACHINE, own_browsers_only, page_url
from steelyard.live._row_readers import mode_in_row, payload_in_row
from steelyard.live._scene import LiveScene
from steelyard.live._setting import Proposal, UnknownSerial
from steelyard.live._source import EventKind, Row, Source
from steelyard.live._stop import stop
from steelyard.live._view import Snapshot, View
from steelyard.live._words import (
    CONNECTION_EVENTS,
    STALE_S,
    LinkState,
    age_words,
    answer_html,
    events_html,
    link_html,
    message_html,
    mismatch_words,
    numbers_html,
    page_part,
    question_html,
)
from steelyard.payload import Payload
from steelyard.payload._tracking import Progress
from steelyard.report._tracking import tracking_plot
from steelyard.robot._geometry import Body

if TYPE_CHECKING:
    import viser

_RATE_HZ = 30.0
_TEXTS_HZ = 10.0
_PLOTS_HZ = 4.0
_TRACE_S = 10.0  # length of the plot of traces
_MAX_POINTS = 400  # of the curve of the mass
_MIN_POINT_STEP_S = 0.1  # of the curve of the mass
_MAX_EVENTS = 60
_MAX_CLOCK_ERROR_S = 1.0  # between the sender's clock and ours, before it counts as another
_SERVER_END_S = 5.0  # for the thread of the server to end
_PANEL_WIDTH = 400  # [px]
_PORT_ATTEMPTS = 1000
_BRAND = (34, 102, 170)  # RGB


_Callback = TypeVar("_Callback", bound=Callable[..., None])


def _reported(callback: _Callback) -> _Callback:
    """Shows any failure of a button on the page; viser would lose it."""

    @wraps(callback)
    def reporting(page: SnapshotPage, event: viser.GuiEvent[Any]) -> None:
        try:
            callback(page, event)
        except Exception as error:  # whatever it is, the user must see it
            if event.client is not None:
                words = f"{type(error).__name__}: {error}"
                _say(event.client, "This failed", words)

    return cast("_Callback", reporting)


class SnapshotPage:
    """A page that shows snapshots; close it, or use it in a `with`.

    Args:
        view: whose snapshots are shown
        source: of its rows; the buttons are there where its controller takes a stop or a payload
        bodies: what the arm looks like; capsules by default
        host: address to listen at; this machine alone by default. Elsewhere nothing can be set
        port: to listen at, or the next one that is free; 0 for any
        dark: at first
        history_file: file for the payloads that are set on the page, to restore the one before
    """

    def __init__(
        self,
        view: View,
        source: Source,
        *,
        bodies: Sequence[Body] = (),
        host: str = THIS_MACHINE[0],
        port: int = 8080,
        dark: bool = False,
        history_file: Path | None = None,
    ) -> None:
        robot = view.setup.arm
        self.view = view
        self._history_file = history_file
        self._dark = dark
        self._joints = view.setup.joint_columns
        self._controller = None
        if view.setup.payload_is_complete and host in THIS_MACHINE:
            self._controller = _controller_to_set(source)
        self._movable = None
        if source.controller is not None:
            self._movable = source.controller.movable
        self._newest: Snapshot | None = None
        self._connection: EventKind | None = None  # the last event of the connection
        self._clock_offset_s = math.nan  # from the sender's time to the time of day
        self.failure: Exception | None = None  # that has ended the drawing
        self._row: tuple[float, ...] = ()  # values of the newest one
        self._carried: Snapshot | None = None  # whose payload is in the scene
        self._received_s = time.monotonic()  # of the newest row
        self._button: viser.GuiButtonHandle | None = None
        self._events: deque[tuple[str, str, str]] = deque(maxlen=_MAX_EVENTS)
        self._points: list[Progress] = []
        self._step_s = _MIN_POINT_STEP_S
        self._traced: deque[tuple[float, Array]] = deque(maxlen=int(_TRACE_S * _TEXTS_HZ))
        self._lock = threading.Lock()
        self._fresh = threading.Event()
        self._closed = False
        others = set(threading.enumerate())
        self._server = _served(host, port)
        self._server_threads = [one for one in threading.enumerate() if one not in others]
        self.url = page_url(host, self._server.get_port())
        self._scene = LiveScene(self._server.scene, robot, bodies or Body.to_draw(robot))
        self._scene.look(self._server.initial_camera)
        self._build()
        self._dress()
        self._thread = threading.Thread(target=self._run, name="steelyard page", daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends the page."""
        self._closed = True
        self._fresh.set()
        self._thread.join(timeout=5.0)
        with contextlib.redirect_stdout(io.StringIO()):  # viser prints when it has stopped
            self._server.stop()
            for thread in self._server_threads:  # viser waits for a second only
                thread.join(timeout=_SERVER_END_S)

    def show(self, snapshot: Snapshot) -> None:
        """Takes a snapshot to show; returns at once.

        Args:
            snapshot: of the weigher
        """
        clock = time.strftime("%H:%M:%S")
        with self._lock:
            if self._newest is None or snapshot.rows != self._newest.rows:
                self._received_s = time.monotonic()
            self._newest = snapshot
            self._row = snapshot.values
            for event in snapshot.events:
                if event.kind in CONNECTION_EVENTS:
                    self._connection = event.kind
            self._events.extend((clock, str(event.kind), event.words) for event in snapshot.events)
        self._fresh.set()

    def follow(self, row: Row) -> None:
        """Takes a row whose posture is to be shown, between two snapshots; returns at once.

        Args:
            row: newer than the last snapshot
        """
        self._row = row.values
        self._received_s = time.monotonic()
        self._fresh.set()

    # --- what is on the page

    def _build(self) -> None:
        gui = self._server.gui
        traces = self.view.setup.traces
        gui.set_panel_label(f"steelyard · {self.view.setup.arm.name}")
        gui.main_panel.dock_right()
        gui.main_panel.set_width(_PANEL_WIDTH)
        gui.add_html(page_part("panel_style", {}))
        if self._movable is not None:
            gui.add_button("Stop the arm", color="red").on_click(self._stop)
        self._link = gui.add_html(link_html(LinkState()))
        self._answer = gui.add_html(answer_html(None, self.view.setup.accuracy))
        if self._controller is not None:
            self._button = gui.add_button("Set payload …", disabled=True)
            self._button.on_click(self._ask)
        self._numbers = gui.add_html("")
        self._log = gui.add_html("")
        gui.add_checkbox("Dark", self._dark).on_update(self._turn)
        panel = gui.add_panel()
        panel.dock_left()
        panel.set_width(_PANEL_WIDTH)
        panel.expand()
        tab = panel.add_tab("Over time")
        self._mass_chart = LiveChart(gui, tab, 0)
        self._width_chart = LiveChart(gui, tab, 1)
        with tab:
            self._chosen = gui.add_dropdown(
                traces.label, traces.choices, initial_value=traces.first, order=2
            )
        self._trace_chart = LiveChart(gui, tab, 3)
        self._centre_chart = LiveChart(gui, tab, 4)

    def _turn(self, event: viser.GuiEvent[Any]) -> None:
        self._dark = event.target.value
        self._dress()

    def _dress(self) -> None:
        self._server.gui.configure_theme(
            dark_mode=self._dark, show_logo=False, show_share_button=False, brand_color=_BRAND
        )
        self._scene.dress(dark=self._dark)

    # --- on the page's own thread

    def _run(self) -> None:
        """Draws until the page is closed; a failure is kept, for the process of the page."""
        try:
            self._draw()
        except Exception as error:  # whatever it is, `LivePage` must learn of it
            self.failure = error

    def _draw(self) -> None:
        """Draws new snapshots, and parts that are due, until the page is closed."""
        before = None
        texts_s = 0.0
        plots_s = 0.0
        while not self._closed:
            self._fresh.wait(1 / _PLOTS_HZ)
            self._fresh.clear()
            now_s = time.monotonic()
            with self._lock:
                snapshot = self._newest
                row = self._row
                events = tuple(self._events)
            if snapshot is None:
                continue
            if snapshot is not before:
                self._remember(snapshot)
                before = snapshot
            if self._server.get_clients():
                self._move(row, snapshot)
                if now_s >= texts_s:
                    texts_s = now_s + 1 / _TEXTS_HZ
                    self._write(snapshot, events)
                if now_s >= plots_s:
                    plots_s = now_s + 1 / _PLOTS_HZ
                    self._plot()
            time.sleep(max(now_s + 1 / _RATE_HZ - time.monotonic(), 0.0))

    def _remember(self, snapshot: Snapshot) -> None:
        """Keeps what the plots show; a long curve of the mass is thinned out."""
        if self._points:
            last_s = self._points[-1].t
        else:
            last_s = -np.inf
        progress = snapshot.progress
        t = self._time_of_day_s(snapshot.t)
        if progress is not None and t - last_s >= self._step_s:
            point = replace(progress, t=t, payload=self._in_flange(progress.payload))
            self._points = [*self._points, point]
            if len(self._points) > _MAX_POINTS:
                self._points = self._points[::2]
                self._step_s = 2 * self._step_s
        if snapshot.trace is not None:
            self._traced.append((t, snapshot.trace))

    def _time_of_day_s(self, t: float) -> float:
        """The sender's time as the time of day, [s] since 1970; another clock starts anew."""
        now_s = time.time()
        if not abs(t + self._clock_offset_s - now_s) < _MAX_CLOCK_ERROR_S:
            self._clock_offset_s = now_s - t
        return t + self._clock_offset_s

    def _in_flange(self, payload: Payload) -> Payload:
        return payload.in_flange(self.view.setup.arm.flange)

    def _move(self, row: Sequence[float], snapshot: Snapshot) -> None:
        with self._server.atomic():
            self._scene.pose(np.array([row[k] for k in self._joints]))
            if snapshot is not self._carried:
                self._carried = snapshot
                if snapshot.payload is None:
                    self._scene.carry(None)
                else:
                    self._scene.carry(self._in_flange(snapshot.payload))

    @property
    def _age_s(self) -> float:
        """Age of the newest row, [s]."""
        return time.monotonic() - self._received_s

    def _write(self, snapshot: Snapshot, events: Sequence[tuple[str, str, str]]) -> None:
        values = self._named_values(snapshot)
        configured = None
        if self.view.setup.payload_is_complete:
            configured = payload_in_row(values)
        age_s = self._age_s
        accuracy = self.view.setup.accuracy
        link = LinkState(self._connection, mode_in_row(values), snapshot.waiting, age_s)
        _put(self._link, link_html(link))
        _put(self._answer, answer_html(snapshot, accuracy, age_s=age_s, configured=configured))
        if self._button is not None and self._button.disabled != (age_s >= STALE_S):
            self._button.disabled = age_s >= STALE_S
        _put(self._numbers, numbers_html(snapshot.payload, configured, is_old=age_s >= STALE_S))
        _put(self._log, events_html(snapshot, events))

    def _plot(self) -> None:
        age = age_words(self._age_s)
        if self._points:
            plot = tracking_plot(self._points, accuracy=self.view.setup.accuracy)
            charts = (self._mass_chart, self._width_chart, self._centre_chart)
            for chart, panel in zip(charts, plot.panels, strict=True):
                chart.draw(panel, plot.colours, age)
        if self._traced:
            traces = self.view.setup.traces
            j = traces.choices.index(self._chosen.value)
            t = np.array([t for t, _ in self._traced])
            rows = np.array([row[:, j] for _, row in self._traced]).T
            curves = [Curve(name, t, y) for name, y in zip(traces.curves, rows, strict=True)]
            title = traces.titles[j]
            panel = Panel(title, "time [s]", title.split()[0], curves, unit=traces.units[j])
            plot = Plot("", [panel])
            self._trace_chart.draw(plot.panels[0], plot.colours, age)

    def _named_values(self, snapshot: Snapshot) -> dict[str, float]:
        return dict(zip(self.view.setup.columns, snapshot.values, strict=True))

    # --- the button, on threads of viser

    @_reported
    def _ask(self, event: viser.GuiEvent[Any]) -> None:
        """Shows old beside new, or why nothing can be set; sends only after another click."""
        self._propose(event)

    def _propose(self, event: viser.GuiEvent[Any], serial: str = "") -> None:
        """Asks whether to set the payload of an arm whose serial number may be stated."""
        client = event.client
        if client is None or self._controller is None:
            return
        try:
            proposal = Proposal.of(self._controller, self._payload_now(), serial=serial)
        except UnknownSerial as error:
            return self._ask_serial(client, error.reason)
        except SteelyardError as error:
            return _say(client, "The payload cannot be set now", str(error))
        modal = client.gui.add_modal(f"Set the payload of {self._controller}?")
        with modal:
            client.gui.add_html(question_html(proposal))
            yes = client.gui.add_button("Set it", color="red")
            no = client.gui.add_button("Cancel", color="gray")
        no.on_click(lambda _: modal.close())

        @_reported
        def send(page: SnapshotPage, event: viser.GuiEvent[Any]) -> None:
            modal.close()
            page._send(client, proposal)

        yes.on_click(partial(send, self))

    def _payload_now(self) -> Payload:
        """The weighed payload; raises `SourceFailed` where there is none, or an old one."""
        if self._age_s >= STALE_S:
            raise SourceFailed(f"no rows came for {self._age_s:.0f} s: the payload is old")
        payload = None
        if self._newest is not None:
            payload = self.view.answer(self._newest.state)
        if payload is None:
            raise SourceFailed("nothing was weighed yet")
        return payload

    def _ask_serial(self, client: viser.ClientHandle, words: str) -> None:
        """Asks for the serial number of the arm, then whether to set the payload."""
        modal = client.gui.add_modal("Which arm is it?")
        with modal:
            client.gui.add_html(message_html(f"{words}."))
            field = client.gui.add_text("Serial number", "")
            on = client.gui.add_button("Continue")
            no = client.gui.add_button("Cancel", color="gray")
        no.on_click(lambda _: modal.close())

        @_reported
        def propose(page: SnapshotPage, event: viser.GuiEvent[Any]) -> None:
            serial = field.value.strip()
            modal.close()
            page._propose(event, serial)

        on.on_click(partial(propose, self))

    def _send(self, client: viser.ClientHandle, proposal: Proposal) -> None:
        """Sends a payload, unless another one is weighed by now."""
        try:
            payload = self._payload_now()
            if not payload.verdict.ok or mismatch_words(payload, proposal.new):
                raise SourceFailed(
                    "the weighed payload has changed since the question, and nothing was sent:"
                    " ask again"
                )
            setting = proposal.carry_out(self._history_file)
        except SteelyardError as error:
            return _say(client, "The payload was not set", str(error))
        if setting.outcome is not None:
            title = f"Payload: {setting.outcome.state}"
            _say(client, title, _sentence(setting.outcome.words))

    @_reported
    def _stop(self, event: viser.GuiEvent[Any]) -> None:
        """Stops the arm and shows what was seen afterwards."""
        if self._movable is None or event.client is None:
            return
        report = stop(self._movable)
        _say(event.client, str(report.state).capitalize(), _sentence(report.sentence))


def _served(host: str, port: int) -> viser.ViserServer:
    """A server that listens, without words in the terminal."""
    try:
        import viser  # noqa: F401
    except ImportError as error:
        raise MissingExtra.of("viser", "live") from error
    try:
        with socket.create_server((host, 0)):
            pass
    except OSError as error:
        raise SourceFailed(
            f"no page can be served at '{host}': {error.strerror or error}"
        ) from error
    port = _free_port(host, port)
    with contextlib.redirect_stdout(io.StringIO()), own_browsers_only(host):
        return _unshared_server(host, port)


def _unshared_server(host: str, port: int) -> viser.ViserServer:
    """A server of viser that cannot be published by a tunnel."""
    import viser

    class UnsharedServer(viser.ViserServer):
        def request_share_url(self, verbose: bool = True) -> str | None:
            return None

        def disconnect_share_url(self) -> None:
            pass

    return UnsharedServer(host=host, port=port, verbose=False)


def _free_port(host: str, port: int) -> int:
    """A port that is free now: the given one or the next; any for 0."""
    for number in range(port, port + _PORT_ATTEMPTS):
        try:
            with socket.create_server((host, number)) as listener:
                return int(listener.getsockname()[1])
        except OSError:
            continue
    raise SourceFailed(f"no page can be served at '{host}': the ports from {port} on are taken")


def _controller_to_set(source: Source) -> Controller | None:
    """The controller of a source, where it accepts a payload while its rows are read."""
    controller = source.controller
    if controller is not None and controller.capabilities.sets_payload_while_streaming:
        return controller
    return None


def _put(handle: viser.GuiHtmlHandle, content: str) -> None:
    if handle.content != content:
        handle.content = content


def _sentence(words: str) -> str:
    """Words with a capital letter and a full stop; names such as RTDE stay as they are."""
    return f"{words[:1].upper()}{words[1:]}."


def _say(client: viser.ClientHandle, title: str, words: str) -> None:
    modal = client.gui.add_modal(title)
    with modal:
        client.gui.add_html(message_html(words))
        client.gui.add_button("Close", color="gray").on_click(lambda _: modal.close())
