"""Estimates beside the rows: no row waits for one, and none is lost."""

import threading
from types import SimpleNamespace

import pytest

from steelyard.live import Event, EventKind, Row, snapshots_of
from steelyard.live._view import Snapshot
from waiting import PATIENCE_S

LOST = Event(EventKind.LOST, "the connection was lost")


class Weigher:
    """Counts its rows; its view estimates with a function."""

    def __init__(self, estimated):
        self.view = SimpleNamespace(estimated=estimated)
        self.taken = []
        self._new = []

    def take(self, item):
        self.taken.append(item)
        self._new.append(item)

    def rows_seen(self):
        new = tuple(self._new)
        self._new = []
        return Snapshot(Row(0.0, (0.0,)), "", None, None, new, len(self.taken), 0, 0)


def rows(count):
    return [Row(float(k), (float(k),)) for k in range(count)]


def test_no_row_waits_for_an_estimate():
    """The first estimate ends only after all rows have been taken."""
    all_taken = threading.Event()

    def estimated(snapshot):
        assert all_taken.wait(PATIENCE_S), "the rows wait for the estimate"
        return snapshot

    def items():
        yield from rows(50)
        all_taken.set()

    weigher = Weigher(estimated)
    found = list(snapshots_of(items(), weigher, every_s=0.0))
    assert len(weigher.taken) == 50
    assert found[-1].rows == 50


def test_every_item_is_in_one_snapshot_and_in_order():
    weigher = Weigher(lambda snapshot: snapshot)
    items = [*rows(30), LOST, *rows(7)]
    found = list(snapshots_of(items, weigher, every_s=0.0))
    assert [item for snapshot in found for item in snapshot.events] == items


def test_a_loss_is_estimated_before_the_next_row():
    weigher = Weigher(lambda snapshot: snapshot)
    found = []
    events_before_next_row = []

    def items():
        yield from rows(3)
        yield LOST
        events_before_next_row.extend(found[-1].events)
        yield from rows(3)

    for snapshot in snapshots_of(items(), weigher, every_s=1e9):
        found.append(snapshot)
    assert LOST in events_before_next_row


def test_an_estimate_that_fails_ends_the_stream_with_its_error():
    def failing(snapshot):
        raise ZeroDivisionError("an estimate")

    with pytest.raises(ZeroDivisionError, match="an estimate"):
        list(snapshots_of(rows(100), Weigher(failing), every_s=0.0))


def test_the_thread_ends_with_its_stream():
    weigher = Weigher(lambda snapshot: snapshot)
    going = snapshots_of(rows(100), weigher, every_s=0.0)
    next(going)
    assert [thread for thread in threading.enumerate() if "steelyard estimates" in thread.name]
    going.close()
    assert not [thread for thread in threading.enumerate() if "steelyard estimates" in thread.name]
