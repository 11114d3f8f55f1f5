"""The contract of every live source: order, gaps, another clock, a loss, a slow reader."""

import dataclasses
import time
from contextlib import contextmanager

import numpy as np
import pytest

from live_helpers import Rows, event_kinds, rows_of, sent, served, source, taken
from steelyard.errors import SourceFailed
from steelyard.io import write
from steelyard.live import EventKind, ReplaySource, Row, Stream
from steelyard.recording import Recording
from waiting import wait_until

STEADY = np.arange(300) / 500


@contextmanager
def ur(times, folder):
    with served(Rows(times)) as found:
        yield (
            source(found),
            lambda: sent(found, len(times) - 1),
        )  # the controller has made the first itself


@contextmanager
def replay(times, folder):
    q = np.arange(len(times))[1:, None] + 0.1 * np.arange(6)
    path = folder / "log.npz"
    write(Recording(times[1:] + 100, q, current=np.full(q.shape, 0.5)), path)
    yield ReplaySource(str(path), speed=None), lambda: None


@contextmanager
def fast_replay(times, folder):
    with replay(times, folder) as (found, send):
        yield dataclasses.replace(found, speed=1e4), send


@contextmanager
def ros2(times, folder):
    from ros2_bridge import bridge  # which skips where foxglove-sdk is not there
    from ros2_bridge import source as of

    with bridge() as arm:  # which has sent the first row itself

        def send():
            for k, t in enumerate(times[1:], start=1):
                arm.publish("/joint_states", arm.row(k, 100 + t))

        yield of(arm), send


@contextmanager
def franka(times, folder):
    from franka_controller import Fake, counted

    with Fake() as fake:
        found, came = counted(fake)

        def send():
            for k, t in enumerate(times[1:], start=1):
                fake.say(f"row {k} {100 + t}")
                came(k)  # for libfranka gives the newest state alone

        yield found, send


SOURCES = {"ur": ur, "ros2": ros2, "franka": franka, "replay": replay}
LIVE = {"ur": ur, "ros2": ros2}
WITH_A_CLOCK = {**SOURCES, "replay": fast_replay}
every_source = pytest.mark.parametrize("given", SOURCES.values(), ids=SOURCES)
every_source_with_a_clock = pytest.mark.parametrize(
    "given", WITH_A_CLOCK.values(), ids=WITH_A_CLOCK
)
every_live_source = pytest.mark.parametrize("given", LIVE.values(), ids=LIVE)
FIRST_JOINT = {"actual_q_0", "q_0", "q.b"}


@every_source
def test_every_row_comes_once_in_its_order_with_the_senders_time(given, tmp_path):
    with given(STEADY, tmp_path) as (found, send), Stream(found) as stream:
        send()
        rows = rows_of(taken(stream, rows=299))
        (at,) = [k for k, name in enumerate(stream.columns) if name in FIRST_JOINT]
        assert [row.values[at] for row in rows] == list(range(1, 300))
        np.testing.assert_allclose([row.t for row in rows], 100 + STEADY[1:], atol=1e-9)
        assert [row.values[0] for row in rows] == [row.t for row in rows]
        assert {(row.clock, row.waiting) for row in rows} == {(0, "")}


@every_source
@pytest.mark.parametrize("missing", [1, 5, 50])
def test_missing_rows_are_an_event_before_the_row_after_them(given, missing, tmp_path):
    times = np.delete(np.arange(300 + missing), np.arange(100, 100 + missing)) / 500
    with given(times, tmp_path) as (found, send), Stream(found) as stream:
        send()
        seen = taken(stream, rows=299)
        (at,) = [k for k, x in enumerate(seen) if x[0] is EventKind.GAP]
        assert seen[at].rows == missing
        assert seen[at + 1].t == pytest.approx(100 + (100 + missing) / 500)


@every_source_with_a_clock
def test_a_reader_that_sleeps_loses_the_oldest_rows_and_learns_how_many(given, tmp_path):
    with given(STEADY, tmp_path) as (found, send), Stream(found, queue_rows=50) as stream:
        send()
        wait_until(lambda: stream.dropped >= 249)
        seen = taken(stream, rows=40)
        rows, lost = rows_of(seen), sum(x.rows for x in seen if x[0] is EventKind.DROPPED)
        assert lost + len(rows) == 299
        assert lost == stream.dropped
        assert rows[-1].t == pytest.approx(100 + STEADY[-1])


def test_a_replay_as_fast_as_possible_waits_for_its_reader(tmp_path):
    with replay(STEADY, tmp_path) as (found, _), Stream(found, queue_rows=120) as stream:
        wait_until(lambda: len(stream._queue) >= 100)
        rows = rows_of(taken(stream, rows=299))
    assert stream.dropped == 0
    np.testing.assert_allclose([row.t for row in rows], 100 + STEADY[1:], atol=1e-9)


def test_a_replay_that_waits_for_its_reader_can_be_closed(tmp_path):
    with replay(STEADY, tmp_path) as (found, _):
        stream = Stream(found, queue_rows=120)
        wait_until(lambda: len(stream._queue) > 100)
        stream.close()
    assert not stream._thread.is_alive()


@every_source
def test_closing_ends_at_once_and_what_came_can_be_taken(given, tmp_path):
    with given(STEADY, tmp_path) as (found, send):
        stream = Stream(found)
        send()
        first = taken(stream, rows=1)
        stream.close()
        came = rows_of([*first, *stream.items(seconds=1.0)])
        assert stream.ended
        assert 1 <= len(came) <= 299


@every_live_source
def test_a_clock_that_goes_back_is_another_clock(given):
    times = [*STEADY[:100] + 2, *STEADY[:100]]
    with given(np.array(times), None) as (found, send), Stream(found) as stream:
        send()
        seen = taken(stream, rows=199)
    assert [row.clock for row in rows_of(seen)] == [0] * 99 + [1] * 100
    assert event_kinds(seen).count("clock") == 1


def test_a_file_whose_clock_goes_back_is_refused(tmp_path):
    path = tmp_path / "back.csv"
    path.write_text("t,q_0,tau_0\n0,0,0\n1,0,0\n0,0,0\n")
    with pytest.raises(SourceFailed, match="time goes back in row 3"):
        Stream(ReplaySource(str(path)))


@pytest.mark.parametrize("how", ["close", "reset"])
def test_a_lost_connection_is_made_again(how):
    with served() as found, Stream(source(found)) as stream:
        found.send(30)
        taken(stream, rows=30)
        found.controller.fault(how)
        found.send()
        seen = taken(stream, until=lambda x: x[0] is EventKind.CONNECTED)
        assert event_kinds(seen) == ["lost", "connected"]
        found.send(30)
        seen = taken(stream, rows=30)
        assert {row.clock for row in rows_of(seen)} == {0}
        assert "gap" in event_kinds(seen)


def test_a_bridge_that_is_started_again_is_found_again():
    from ros2_bridge import bridge  # which skips where foxglove-sdk is not there
    from ros2_bridge import source as of

    with bridge() as arm, Stream(of(arm)) as stream:
        for k in range(1, 31):
            arm.publish("/joint_states", arm.row(k, 100 + k / 500))
        taken(stream, rows=30)
        arm.stop()
        seen = taken(stream, until=lambda x: x[0] is EventKind.LOST)
        arm.start()
        seen += taken(stream, until=lambda x: x[0] is EventKind.CONNECTED)
        assert event_kinds(seen) == ["lost", "connected"]
        arm.publish("/joint_states", arm.row(40, 100 + 40 / 500))
        seen = taken(stream, rows=1)
        assert [row.clock for row in rows_of(seen)] == [0]
        assert "gap" in event_kinds(seen)


def test_a_franka_that_is_lost_is_found_again_with_its_clock():
    from franka_controller import Fake, counted

    with Fake() as fake, Stream(counted(fake, timeout_s=0.5)[0]) as stream:
        fake.say("row 1 200.0")
        taken(stream, rows=1)
        fake.say("close")
        seen = taken(stream, until=lambda x: x[0] is EventKind.CONNECTED)
        assert event_kinds(seen)[-2:] == ["lost", "connected"]
        fake.say("row 2 100.5")
        assert [row.clock for row in rows_of(taken(stream, rows=1))] == [1]


def test_a_rebooted_controller_is_another_clock():
    with served() as found, Stream(source(found)) as stream:
        found.send(30)
        taken(stream, rows=30)
        found.controller.fault("reboot")
        found.send()
        taken(stream, until=lambda x: x[0] is EventKind.CONNECTED)
        found.send(30)
        rows = rows_of(taken(stream, rows=30))
        assert {row.clock for row in rows} == {1}
        assert rows[0].t < 1


def test_a_recording_is_over_and_says_so(tmp_path):
    with replay(STEADY, tmp_path) as (found, _), Stream(found) as stream:
        seen = list(stream)
    assert event_kinds(seen) == ["connected", "ended"]
    assert "log.npz is over" in seen[-1].words
    assert len(rows_of(seen)) == 299


def test_a_recording_takes_its_time_where_it_is_asked_for(tmp_path):
    with replay(STEADY, tmp_path) as (found, _):
        began = time.monotonic()
        with Stream(ReplaySource(found.path, speed=4.0)) as stream:
            rows = [x for x in stream if isinstance(x, Row)]
        assert time.monotonic() - began > 0.14
        assert rows[-1].received_s - rows[0].received_s > 0.1
