"""The picks of a stream on a page in the browser, while the cell works.

The page is the report on the shift so far (`report._picks`), with a banner that shows the newest
pick and whether rows still come. The banner asks for the newest state once per second; the report
is loaded again after a pick. The server is a thread of this process: a report takes some 20 ms, and
rows wait in the queue of their stream meanwhile. The page shows, and changes nothing.
"""

from __future__ import annotations

import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

from steelyard._templates import render
from steelyard.errors import SourceFailed
from steelyard.live._page_access import is_own_host, own_names, page_url
from steelyard.picking import EarlyAnswer, Pick, Shift
from steelyard.report._html import page_values
from steelyard.report._picks import picks_page

_PORT_ATTEMPTS = 100
_STALE_S = 2.0  # without a row, until the page says so


class PicksPage:
    """A page of the picks so far; close it, or use it in a `with`.

    Attributes:
        url: address of the page
        host_names: names that the page may be opened by

    Args:
        host: address to listen at; this machine alone by default
        port: to listen at, or the next one that is free; 0 for any
    """

    def __init__(self, *, host: str = "127.0.0.1", port: int = 8080) -> None:
        self._shift: Shift | None = None
        self._early: EarlyAnswer | None = None
        self._row_s = -float("inf")
        self._server = _listening(host, port)
        self._server.page = self  # type: ignore[attr-defined]
        self.host_names = own_names(host)
        self.url = page_url(host, self._server.server_port)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends the page."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def note_row(self) -> None:
        """Notes that a row has come."""
        self._row_s = time.monotonic()

    def show(self, shift: Shift) -> None:
        """Shows the picks so far from now on.

        Args:
            shift: with these picks
        """
        self._early = None
        self._shift = shift

    def show_early(self, early: EarlyAnswer) -> None:
        """Shows an early answer until the pick itself is known.

        Args:
            early: about the next pick
        """
        self._early = early

    @property
    def state(self) -> dict[str, Any]:
        """What the banner shows, as plain texts and numbers."""
        shift = self._shift
        if shift is None:
            return {"picks": 0, "state": "stale", "newest": "", "words": "Waiting for rows."}
        silent_s = time.monotonic() - self._row_s
        newest = shift.picks[-1] if shift.picks else None
        if silent_s > _STALE_S:
            state = "stale"
            words = "No rows have come for some seconds."
        else:
            state = _state_of(newest)
            words = f"{len(shift.picks)} picks, {len(shift.alarms)} alarms"
            early = self._early
            if early is not None:
                words += f"; pick {early.number} is carried, at first sight: {early.decision}"
        return {
            "picks": len(shift.picks),
            "state": state,
            "newest": _words_of(newest),
            "words": words,
        }

    @property
    def html(self) -> str:
        """The page as one HTML document."""
        values: dict[str, Any] = {"banner": self.state}
        if self._shift is None:
            template = "waiting_for_picks.html"
        else:
            template = "picks.html"
            values |= page_values(picks_page(self._shift))
        return render(["steelyard.live", "steelyard.report"], template, values)


def _state_of(pick: Pick | None) -> str:
    if pick is None:
        return "waiting"
    if pick.is_alarm:
        return "alarm"
    return str(pick.decision)


def _words_of(pick: Pick | None) -> str:
    if pick is None:
        return "No pick yet"
    words = f"Pick {pick.number}: {pick.decision}"
    if pick.mass is not None:
        words += f", {pick.mass.value:.3f} ± {pick.mass.half_width:.3f} kg"
    return words


class _Handler(BaseHTTPRequestHandler):
    """Answers the browser; there is nothing to send to it."""

    def do_GET(self) -> None:  # the name is that of the standard library
        """Sends the page or its state."""
        page: PicksPage = self.server.page  # type: ignore[attr-defined]
        local_address = self.request.getsockname()[0]
        if not is_own_host(self.headers.get("Host", ""), page.host_names, local_address):
            self.send_error(403, f"open {page.url}")
            return
        path = self.path.partition("?")[0]
        if path == "/":
            self._answer(page.html, "text/html; charset=utf-8")
        elif path == "/state.json":
            self._answer(json.dumps(page.state), "application/json")
        else:
            self.send_error(404)

    def _answer(self, text: str, kind: str) -> None:
        data = text.encode()
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        """Prints nothing."""


def _listening(host: str, port: int) -> ThreadingHTTPServer:
    """A server at a port, or at the next one that is free."""
    ports = [0] if port == 0 else range(port, port + _PORT_ATTEMPTS)
    for candidate in ports:
        try:
            return ThreadingHTTPServer((host, candidate), _Handler)
        except OSError as error:
            problem = error
    raise SourceFailed(f"the page cannot be shown at {host}:{port}: {problem}")
