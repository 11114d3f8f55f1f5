"""A Franka arm, by the real libfranka, from a fake controller in a process of its own."""

import numpy as np
import pytest

import steelyard as sy
from conftest import steelyard
from franka_controller import Fake, counted
from live_helpers import event_kinds, loaded_panda, rows_of, taken, watched_panda
from steelyard.errors import InvalidRobot, MissingExtra, SourceFailed, UnknownName
from steelyard.io import read
from steelyard.live import (
    EventKind,
    FrankaController,
    LiveWeigher,
    Recorder,
    Row,
    Stream,
    TorqueSetup,
    source_of,
)
from steelyard.live._controller import movable_of
from steelyard.live._franka_reader import COLUMNS
from steelyard.live._same_arm import require_same_arm
from steelyard.live._touch import TouchWatch
from steelyard.robot import load_robot
from steelyard.torque.tracking import TorqueTrackerState

pytest.importorskip("pylibfranka")


@pytest.fixture(scope="module")
def fake():
    with Fake() as found:
        yield found


def sent(fake, came, rows, start=1):
    for k in range(start, start + rows):
        fake.say(f"row {k} {100 + k / 1000}")
        came(k)


def test_addresses():
    assert source_of("franka://arm") == FrankaController("arm")
    assert str(FrankaController("arm")) == "franka://arm"
    with pytest.raises(UnknownName, match="franka://HOST"):
        source_of("franka://arm:1337")


def test_rows_have_libfrankas_names_and_are_read_back(fake, tmp_path):
    source, came = counted(fake)
    with Stream(source) as stream, Recorder(tmp_path / "log.parquet", stream.columns) as recorder:
        sent(fake, came, 30)
        rows = rows_of(taken(stream, rows=30))
        for row in rows:
            recorder.add(row)
    said = dict(zip(stream.columns, rows[4].values, strict=True))
    assert said["time_s"] == pytest.approx(100.005, abs=1e-9)
    assert [said["q_3"], said["tau_J_3"], said["m_ee"]] == pytest.approx([5.3, 10.6, 0.7], rel=1e-6)
    assert (said["robot_mode"], rows[4].waiting, rows[4].wrench) == (1, "", None)
    back = read(tmp_path / "log.parquet")
    np.testing.assert_allclose(back.tau, 2 * back.q, rtol=1e-6)
    np.testing.assert_allclose(np.diff(back.t), 0.001, atol=1e-9)
    assert {"q", "v", "tau", "q_commanded"} <= set(back.channels)


def test_modes_in_which_nothing_can_be_weighed_are_said(fake):
    source, came = counted(fake)
    with Stream(source) as stream:
        sent(fake, came, 2)
        for k, (mode, words) in enumerate(
            [(3, "a hand guides the arm"), (4, "reflex"), (5, "user stop")]
        ):
            fake.say(f"mode {mode}")
            sent(fake, came, 1, start=3 + k)
            seen = taken(stream, rows=1 if k else 3)
            assert rows_of(seen)[-1].waiting.startswith(words)
            assert event_kinds(seen)[-1] == "mode"
        fake.say("mode 1")
        sent(fake, came, 1, start=6)
        assert rows_of(taken(stream, rows=1))[-1].waiting == "just started again"
        fake.say("row 7 101.0")
        assert rows_of(taken(stream, rows=1))[-1].waiting == ""


def test_the_load_set_on_the_controller_is_an_event(fake):
    source, came = counted(fake)
    with Stream(source) as stream:
        sent(fake, came, 1)
        seen = taken(stream, until=lambda x: x[0] is EventKind.PAYLOAD)
    (said,) = [x.words for x in seen if x[0] is EventKind.PAYLOAD]
    assert "payload is 0.000 kg at 0.0 0.0 0.0 mm" in said


def test_places_without_an_arm_are_one_clear_line():
    with pytest.raises(SourceFailed, match=r"there is no host 'no\.such\.host\.invalid'"):
        Stream(FrankaController("no.such.host.invalid"))
    with pytest.raises(
        SourceFailed, match=r"franka://127\.0\.0\.9: libfranka: Connection to FCI refused"
    ):
        Stream(FrankaController("127.0.0.9"))
    with (
        Fake("old") as old,
        pytest.raises(SourceFailed, match=r"franka://.*[Ii]ncompatible.*version"),
    ):
        Stream(FrankaController(old.host))


def test_a_controller_that_never_answers_does_not_hold_us_up(monkeypatch):
    monkeypatch.setattr("steelyard.live._franka._START_TIMEOUT_S", 1.0)
    with (
        Fake("mute") as mute,
        pytest.raises(SourceFailed, match="no state came for 1 s: is it a Franka arm"),
    ):
        Stream(FrankaController(mute.host))


def test_a_reader_that_is_killed_or_a_load_without_an_answer_is_said(fake, monkeypatch):
    connection = FrankaController(fake.host, timeout_s=0.2).connect()
    with pytest.raises(SourceFailed, match=r"did not answer within 0\.2 s"):  # without a reader
        connection.set_load(1.0, [0] * 3, [0] * 9)
    connection._child.kill()
    connection._child.wait()
    with pytest.raises(SourceFailed, match="was lost: the program that reads it has ended"):
        list(iter(connection.read, None))
    connection.close()
    with pytest.raises(SourceFailed, match=r"franka://.* was lost: "):
        connection.set_load(1.0, [0] * 3, [0] * 9)


def test_without_the_library_the_extra_is_named(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=r"needs pylibfranka .*glibc 2\.34.*steelyard\[franka\]"):
        Stream(FrankaController("arm"))


def test_an_arm_of_another_kind_is_seen_by_its_flange():
    panda, q = load_robot("panda"), np.array([0.3, -0.5, 0.2, -2.0, 0.1, 1.8, 0.4])
    T, tip = panda.forward_kinematics(q), np.eye(4)
    tip[:3, 3] = [0, 0.01, 0.1034]
    names = {"O_T_EE": (T @ tip).T.ravel(), "F_T_EE": tip.T.ravel(), "q": q}
    values = {
        f"{word}_{k}": np.array([x]) for word, row in names.items() for k, x in enumerate(row)
    }
    require_same_arm(panda, values, "franka://arm")
    with pytest.raises(InvalidRobot, match="franka://arm is not the arm of the model"):
        require_same_arm(panda, values | {"O_T_EE_14": values["O_T_EE_14"] + 0.1}, "franka://arm")


def test_the_verb_records_and_no_motion_is_sent(fake, tmp_path):
    fake.say("auto on")
    words = ("record", f"franka://{fake.host}", "-o", "x.parquet", "--seconds", "0.3")
    done = steelyard(*words, cwd=tmp_path)
    fake.say("auto off")
    assert " 0 dropped here" in done.stdout, done.stderr
    assert read(tmp_path / "x.parquet").n == 7
    with pytest.raises(
        SourceFailed, match=r"franka://arm cannot be moved from here: give ur://HOST"
    ):
        movable_of(FrankaController("arm"))


def test_rows_under_libfrankas_names_are_weighed():
    model, loaded = loaded_panda()
    weigher = LiveWeigher(TorqueSetup(model, COLUMNS, "franka://arm"))
    for t, q, v, tau in zip(loaded.t, loaded.q, loaded.v, loaded.tau, strict=True):
        rest = np.zeros(len(COLUMNS) - 22)
        weigher.take(Row(t, tuple(np.r_[t, q, v, tau, rest])))
    offline = sy.track(loaded, model=model).payload
    np.testing.assert_allclose(weigher.payload().body.vector, offline.body.vector, rtol=1e-6)
    assert weigher.payload().mass == pytest.approx(1.5, rel=0.1)


def test_a_row_without_numbers_is_no_push(monkeypatch):
    model, loaded = loaded_panda()
    weigher, pushes = LiveWeigher(TorqueSetup(model, COLUMNS)), []
    monkeypatch.setattr(TorqueTrackerState, "settled", True)
    monkeypatch.setattr(TouchWatch, "look", lambda self, t, e, std: pushes.append([t, *e]) or "")
    for k in range(120):
        values = np.r_[
            loaded.t[k], loaded.q[k], loaded.v[k], loaded.tau[k], np.zeros(len(COLUMNS) - 22)
        ]
        values[15:22] = np.nan if k == 100 else values[15:22]
        weigher.take(Row(loaded.t[k], tuple(values)))
    assert weigher.state.counts.corrupt == 1
    assert len(pushes) > 10
    assert np.isfinite(pushes).all()


def test_track_weighs_what_the_arm_carries(fake, tmp_path):
    def send(t, q, v, tau):
        fake.say(" ".join(["state", *map(repr, map(float, [100 + t, *q, *v, *tau]))]))

    address = f"franka://{fake.host}"
    found, done = watched_panda(tmp_path, address, send, lambda _: fake.heard("connected"))
    assert done.returncode == 0, done.stderr
    assert found["mass"] == pytest.approx(1.5, rel=0.1)
    assert found["rows"] > 100  # all of them on a machine that keeps up
