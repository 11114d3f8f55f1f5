"""Picks of a simulated controller: rows of RTDE, with the gripper as a digital output."""

import json
import threading
from dataclasses import replace
from functools import cache
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import numpy as np
import pytest

import steelyard as sy
from live_helpers import sent, served
from picking_shifts import HOUSING, arm, empty_run, plan, shift
from steelyard.live import PicksPage, PickStreamOptions, live_picks
from steelyard.picking import PickingOptions
from steelyard.recording import Preparation
from steelyard.simulation import PlannedFault
from steelyard.twin._backend import NOMINAL_GAINS, RecordedArm
from steelyard.twin._clients import RtdeConnection
from waiting import wait_until

OUTPUT = 2  # the digital output of the gripper


def with_currents(log):
    """A recording with motor currents instead of torques."""
    return replace(log, tau=None, current=log.tau / np.array(NOMINAL_GAINS))


@cache
def driven_arm():
    """The arm with known gains of its drives."""
    return arm().with_drive(replace(arm().drive, gain=np.array(NOMINAL_GAINS)))


@cache
def current_model():
    """The arm, identified from motor currents."""
    runs = [with_currents(empty_run(arm(), seed)) for seed in (1, 2)]
    how = Preparation(cutoff_hz=10.0)
    return sy.identify(driven_arm(), runs, friction="linear", preparation=how)


class Cell(RecordedArm):
    """A recorded arm whose gripper is a digital output of its controller."""

    def __init__(self, log):
        super().__init__(with_currents(replace(log, gripper=None)), driven_arm())
        self.closed = log.gripper[:, 0] > 0.5

    def set_gripper(self, controller):
        """Sets the output for the next row."""
        k = min(self._next, len(self.closed) - 1)
        controller.registers.set_digital(OUTPUT, bool(self.closed[k]))


def send_when_connected(server, rows):
    """Sends rows once a client has asked for them."""
    wait_until(lambda: any(_wants_rows(client) for client in list(server._clients.values())))
    sent(server, rows)


def _wants_rows(client):
    return isinstance(client, RtdeConnection) and client._rtde._started


def page_of(page):
    """The state and the text of a page."""
    with urlopen(f"{page.url}/state.json") as answer:
        state = json.load(answer)
    with urlopen(page.url) as answer:
        return state, answer.read().decode()


@pytest.fixture(scope="module")
def found():
    """A shift on a controller: its picks, those that came one by one, and the truth."""
    faults = (PlannedFault(2, "missing"), PlannedFault(3, "double"))
    log, truth = shift(arm(), plan(cycles=4, carry_s=1.2, back_s=1.2, faults=faults), 121)
    cell = Cell(log)
    seen = []
    states = []
    with PicksPage(port=0) as page, served(cell, on_step=cell.set_gripper) as server:
        sender = threading.Thread(
            target=send_when_connected, args=(server, len(log) + 250), daemon=True
        )
        stream = PickStreamOptions(
            gripper="actual_digital_output_bits",
            on_pick=lambda pick: (seen.append(pick), states.append(page_of(page))),
            page=page,
            seconds=float(log.t[-1]) + 1.0,
        )
        options = PickingOptions(closed="high", bit=OUTPUT)
        sender.start()
        shift_found = live_picks(
            f"ur://{server.host}:{server.port}",
            current_model(),
            parts=[HOUSING],
            options=options,
            stream=stream,
        )
        sender.join()
        states.append(page_of(page))
    return shift_found, seen, truth, states


def test_picks_of_a_controller_are_weighed_by_its_currents(found):
    shift_found, seen, truth, _ = found
    assert [str(pick.decision) for pick in shift_found.picks] == [
        "good",
        "missing",
        "double",
        "good",
    ]
    assert seen == list(shift_found.picks)
    for pick, true in zip(seen, truth, strict=True):
        assert abs(pick.mass.value - true.mass) < 3.5 * pick.mass.std < 0.5


def test_the_page_shows_each_pick_and_its_alarms(found):
    states = found[-1]
    assert [state["picks"] for state, _ in states] == [0, 1, 2, 3, 4]
    assert [state["state"] for state, _ in states[1:4]] == ["good", "alarm", "alarm"]
    state, text = states[-1]
    assert state["newest"].startswith("Pick 4: good, ")
    assert state["words"] in ("4 picks, 2 alarms", "No rows have come for some seconds.")
    assert "Every pick in the order of time" in text
    assert 'data-picks="4"' in text
    assert text.index("<body>") < text.index('id="live"') < text.index("<h1>")


def test_a_page_before_the_first_row_and_unknown_addresses():
    with PicksPage(port=0) as page:
        state, text = page_of(page)
        assert state["words"] == "Waiting for rows."
        assert "Waiting for rows." in text
        with pytest.raises(HTTPError, match="404"):
            urlopen(f"{page.url}/other")
        rebound = Request(page.url, headers={"Host": "elsewhere.example"})
        with pytest.raises(HTTPError, match=f"403: open {page.url}"):
            urlopen(rebound)
        with PicksPage(port=int(page.url.rpartition(":")[2])) as other:
            assert other.url != page.url
