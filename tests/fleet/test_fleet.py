"""A fleet from its logs: build, identify, weigh; again, after a kill, and with bad input."""

import json
import re
import sys
from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import steelyard as sy
from conftest import steelyard
from fleet_logs import FRICTION, START, log, tiny_arm, tiny_fleet, write_catalogue
from steelyard.errors import MissingExtra, SteelyardError, UnknownName, UnreadableFile
from steelyard.fleet import Fleet
from steelyard.fleet._arms import Agreement, ArmLogs, merge
from steelyard.fleet._catalogue import read_catalogue
from steelyard.fleet._estimate import payload_of
from steelyard.fleet._fleet import _usable
from steelyard.fleet._reduce import Reduction, packed, unpacked
from steelyard.identification import RegressionFactor
from steelyard.io import write
from steelyard.robot._parameters import ParameterKind
from steelyard.verdict import DoubtKind

OTHER = (1.3, 0.7, 1.2)
"""Times the link masses of another arm of the same type."""


@pytest.fixture(scope="module")
def scene(tmp_path_factory):
    """A catalogue and its store."""
    folder = tmp_path_factory.mktemp("fleet")
    catalogue, rows = tiny_fleet(folder)
    fleet = Fleet.build(catalogue, folder / "store", workers=1)
    return folder, catalogue, rows, fleet


def test_logs_become_rows_models_and_payloads(scene):
    _, _, rows, fleet = scene
    assert dict(fleet.built) == {"new": 12, "changed": 0, "unchanged": 0, "failed": 0}
    assert fleet.robots == ["arm0", "arm1"]
    logs = fleet.logs
    assert len(logs) == 12
    assert all(log.ok for log in logs)
    assert logs[0].time == START
    models = fleet.identify()
    assert all(model.verdict.ok for model in models.values())
    assert all(doubt.kind is not DoubtKind.ASSUMED for doubt in models["arm1"].verdict.doubts)
    friction = models["arm1"].friction.coefficients[0]
    np.testing.assert_allclose(friction, FRICTION, atol=0.1)
    weighed = fleet.weigh()
    assert [payload.load for payload in weighed] == [row["load"] for row in rows]
    for payload in weighed:
        assert payload.ok, payload.verdict
        assert abs(payload.error) < 4 * payload.mass_std
        assert payload.mass_std < 0.1


def test_a_model_from_factors_is_that_of_the_samples(scene):
    """One pass over all samples, weighted alike, gives the same numbers."""
    folder, _, rows, fleet = scene
    model = fleet.identify()["arm0"]
    how = Reduction.of(str(folder / "tiny.urdf"))
    empty = [row["file"] for row in rows if row["robot"] == "arm0" and row["load"] == 0]
    factor = RegressionFactor.empty(3, len(how.parameters))
    for name in empty:
        part = how.rows(sy.prepare(sy.read(folder / name), how.preparation))
        factor = factor.add(part.Y, part.tau, part.usable)
    grams = np.swapaxes(factor.R, 1, 2) @ factor.R
    found = np.swapaxes(model.factor.R, 1, 2) @ model.factor.R
    scale = np.sqrt(np.einsum("jpp->jp", grams))
    assert np.abs(found - grams).max() <= 1e-9 * (scale[:, :, None] * scale[:, None, :]).max()


@pytest.mark.thorough
def test_friction_of_a_log_is_a_draw_from_that_of_the_others(tmp_path):
    """The spread between logs is learned, and payloads are known better than with free friction."""
    spread = 0.08
    scales = np.exp(spread * np.random.default_rng(3).normal(size=(24, 3)))
    catalogue, _ = tiny_fleet(
        tmp_path, arms=1, logs=24, arm0=lambda k: {"friction": FRICTION * scales[k]}
    )
    fleet = Fleet.build(catalogue, tmp_path / "store", workers=1)
    model = fleet.identify()["arm0"]
    coulomb = model.estimate.parameters.of_kind(ParameterKind.COULOMB)
    found = model.run_spread[coulomb] / model.estimate.value[coulomb]
    assert (found > 0.6 * spread).all()
    assert (found < 1.6 * spread).all()
    logs = sum(row.load == 0 for row in fleet._usable("arm0"))
    assert logs > 10
    assert f"estimated from {logs} runs" in fleet.model("arm0").run_spread_sentence
    added = np.diag(model.covariance_of_other_runs - model.estimate.covariance)
    np.testing.assert_allclose(added, (1 + 1 / logs) * model.run_spread**2, atol=1e-12)
    loaded = next(row for row in fleet._usable("arm0") if row.load == 1.5)
    factor = unpacked(loaded.factor, loaded.rows)
    known, free = (
        payload_of(each, factor, np.array(loaded.widening), np.array(loaded.torque))
        for each in (model, replace(model, run_spread=None))
    )
    assert known.std[0] < 0.9 * free.std[0]
    assert abs(known.unconstrained.mass - 1.5) < 3 * known.std[0]


def test_the_saved_model_weighs_files_too(scene):
    folder, _, _, fleet = scene
    fleet.identify()
    model = fleet.model("arm0")
    payload = sy.weigh(model, folder / "arm0-01.npz")
    assert payload.mass == pytest.approx(1.5, abs=0.1)
    weighed = next(row for row in fleet.weigh() if row.file == "arm0-01.npz")
    assert weighed.mass == pytest.approx(payload.unconstrained.mass, abs=0.03)


@settings(max_examples=15, deadline=None)
@given(st.randoms(use_true_random=False), st.integers(2, 40))
def test_any_tree_of_merges_equals_one_pass(random, count):
    rng = np.random.default_rng(random.randrange(2**32))
    p = 7
    mixing = rng.normal(size=(p, p)) * 10.0 ** rng.uniform(-3, 3, size=p)
    parts = [
        (rng.normal(size=(rng.integers(3, 30), 2, p)) @ mixing, rng.normal(size=p))
        for _ in range(count)
    ]
    whole, factors = RegressionFactor.empty(2, p), []
    for Y, theta in parts:
        tau = Y @ theta + 0.1 * rng.normal(size=Y.shape[:2])
        whole = whole.add(Y, tau)
        one = RegressionFactor.empty(2, p).add(Y, tau)
        factors.append(unpacked(packed(one), one.rows))
    while len(factors) > 1:
        random.shuffle(factors)
        size = random.randint(2, 8)
        factors = [merge(factors[:size]), *factors[size:]]
    assert (factors[0].rows == whole.rows).all()
    grams = [np.swapaxes(f.R, 1, 2) @ f.R for f in (whole, factors[0])]
    scale = np.sqrt(np.einsum("jpp->jp", grams[0]))
    error = np.abs(grams[1] - grams[0]) / (scale[:, :, None] * scale[:, None, :])
    assert error.max() <= 1e-9


def test_a_second_run_reads_only_what_is_new(tmp_path):
    catalogue, rows = tiny_fleet(tmp_path, arms=1, logs=4)
    robot = tiny_arm(tmp_path)
    store = tmp_path / "store"
    Fleet.build(catalogue, store, workers=1)
    files = {path: path.stat().st_mtime_ns for path in store.glob("logs/*/*.parquet")}
    again = Fleet.build(catalogue, store, workers=1)
    assert dict(again.built) == {"new": 0, "changed": 0, "unchanged": 4, "failed": 0}
    (tmp_path / "arm0-00.npz").touch()  # the same content
    write(log(robot, 77), tmp_path / "arm0-01.npz")
    write(log(robot, 78), tmp_path / "new.npz")
    rows = [*rows, {"robot": "arm0", "model": "tiny.urdf", "file": "new.npz", "load": 0.0}]
    third = Fleet.build(write_catalogue(tmp_path, rows), store, workers=1)
    assert dict(third.built) == {"new": 1, "changed": 1, "unchanged": 3, "failed": 0}
    changed = [path for path, when in files.items() if path.stat().st_mtime_ns != when]
    assert len(changed) == 1
    rows[0]["load"] = 0.2  # what the catalogue says of it is another thing now
    assert Fleet.build(write_catalogue(tmp_path, rows), store, workers=1).built["changed"] == 1


def test_logs_reduced_with_an_earlier_model_do_not_count(scene):
    *_, fleet = scene
    rows = [row for row in fleet.logs if row.robot == "arm0"]
    earlier = [
        replace(row, reduction="of another model", written=row.written - timedelta(days=1))
        for row in rows
    ]
    assert _usable([*earlier, *rows]) == _usable(rows) == rows
    assert _usable([*rows[:2], *earlier[2:]]) == rows[:2]


def test_many_rows_are_gathered_and_stay_the_same(tmp_path, monkeypatch):
    monkeypatch.setattr("steelyard.fleet._store._MIN_SMALL_FILES", 3)
    catalogue, _ = tiny_fleet(tmp_path, arms=1, logs=4)
    fleet = Fleet.build(catalogue, tmp_path / "store", workers=1)
    names = [path.name[:4] for path in (tmp_path / "store/logs/robot=arm0").iterdir()]
    assert names == ["all-"]
    assert len(fleet.logs) == 4
    assert Fleet.build(catalogue, tmp_path / "store", workers=1).built["unchanged"] == 4
    write(log(tiny_arm(tmp_path), 99), tmp_path / "arm0-02.npz")
    fleet = Fleet.build(catalogue, tmp_path / "store", workers=1)
    assert fleet.built["changed"] == 1
    assert len(fleet.logs) == 4  # the latest row of a log counts
    assert fleet.identify()["arm0"].verdict.ok


def test_a_bad_log_fails_alone_with_its_reason(tmp_path):
    catalogue, _ = tiny_fleet(tmp_path, arms=1, logs=5)
    (tmp_path / "arm0-00.npz").write_bytes((tmp_path / "arm0-00.npz").read_bytes()[:5000])
    (tmp_path / "arm0-01.npz").unlink()
    robot = tiny_arm(tmp_path)
    spoiled = log(robot, 5)
    write(replace(spoiled, tau=None, current=spoiled.tau), tmp_path / "arm0-02.npz")
    fleet = Fleet.build(catalogue, tmp_path / "store", workers=1)
    assert fleet.built["failed"] == 3
    reasons = {log.file: log.reason for log in fleet.logs if not log.ok}
    assert reasons["arm0-01.npz"] == "there is no file arm0-01.npz"
    assert "arm0-00.npz" in reasons["arm0-00.npz"]
    assert reasons["arm0-02.npz"].startswith("arm0-02.npz has motor currents, and tiny no gains")
    write(log(robot, 6), tmp_path / "arm0-01.npz")  # it has come
    assert Fleet.build(catalogue, tmp_path / "store", workers=1).built["changed"] == 1


def test_logs_of_another_arm_are_left_out_and_named(tmp_path):
    special = {3: {"links": OTHER}}
    catalogue, _ = tiny_fleet(tmp_path, arms=1, logs=9, arm0=lambda k: special.get(k, {}))
    fleet = Fleet.build(catalogue, tmp_path / "store", workers=1)
    model = fleet.identify()["arm0"]
    (doubt,) = model.verdict.doubts
    assert doubt.kind == DoubtKind.OTHER_ROBOT
    assert "arm0-03.npz" in doubt.words
    assert "5 logs" in model.made_from[0]


def test_too_few_logs_that_agree_leave_none_out():
    arm = ArmLogs("arm0", ["a", "b", "c"])
    assert not arm.leave_out(Agreement({"a": 1.0, "b": 1.0, "c": 50.0}))
    assert arm.used == ["a", "b", "c"]
    arm = ArmLogs("arm0", ["a", "b", "c", "d"])
    assert arm.leave_out(Agreement({"a": 1.0, "b": 1.0, "c": 50.0, "d": 1.0}))
    assert arm.used == ["a", "b", "d"]


def test_two_arms_that_share_a_name_contradict_each_other(tmp_path):
    catalogue, _ = tiny_fleet(
        tmp_path, arms=1, logs=8, arm0=lambda k: {"links": OTHER if k % 4 > 1 else 1.0}
    )
    model = Fleet.build(catalogue, tmp_path / "store", workers=1).identify()["arm0"]
    assert not model.verdict.ok
    assert "several arms under this name" in model.verdict.sentence


def test_work_cycles_of_one_file_are_rows_of_their_own(tmp_path):
    robot = tiny_arm(tmp_path)
    write(log(robot, 1, duration_s=30.0), tmp_path / "long.npz")
    rows = [
        {
            "robot": "a",
            "model": "tiny.urdf",
            "file": "long.npz",
            "load": 0,
            "start_s": k,
            "end_s": k + 10,
        }
        for k in (0, 10, 20)
    ]
    fleet = Fleet.build(write_catalogue(tmp_path, rows), tmp_path / "store", workers=1)
    counts = [log.rows for log in fleet.logs]
    assert len(counts) == 3
    whole = Fleet.build(
        write_catalogue(tmp_path, [{"robot": "b", "model": "tiny.urdf", "file": "long.npz"}]),
        tmp_path / "whole",
        workers=1,
    )
    assert (np.sum(counts, axis=0) == whole.logs[0].rows).all()


def test_a_cycle_that_ends_before_it_begins_is_corrected(tmp_path):
    write(log(tiny_arm(tmp_path), 1, duration_s=12.0), tmp_path / "log.npz")
    row = {"robot": "a", "model": "tiny.urdf", "file": "log.npz", "load": 0, "start_s": 2}
    wrong = write_catalogue(tmp_path, [{**row, "end_s": 1}])
    with pytest.raises(UnreadableFile, match="correct `start_s` or `end_s` in the catalogue"):
        Fleet.build(wrong, tmp_path / "store", workers=1)
    corrected = write_catalogue(tmp_path, [{**row, "end_s": 11}])
    assert len(Fleet.build(corrected, tmp_path / "store", workers=1).logs) == 1


def test_long_logs_are_read_in_blocks(tmp_path, monkeypatch):
    robot = tiny_arm(tmp_path)
    write(log(robot, 1, duration_s=30.0), tmp_path / "long.parquet")
    rows = [{"robot": "a", "model": "tiny.urdf", "file": "long.parquet"}]
    catalogue = write_catalogue(tmp_path, rows)
    whole = Fleet.build(catalogue, tmp_path / "one", workers=1)
    monkeypatch.setattr("steelyard.fleet._reduce._BLOCK_S", 7.0)
    cut = Fleet.build(catalogue, tmp_path / "many", workers=1)
    one, many = (fleet.logs[0] for fleet in (whole, cut))
    assert one.rows == many.rows
    np.testing.assert_allclose(one.noise, many.noise, rtol=1e-3)


def test_a_folder_or_pattern_is_a_catalogue_too(tmp_path):
    robot = tiny_arm(tmp_path)
    for name in ("left", "right"):
        (tmp_path / "logs" / name).mkdir(parents=True)
        write(log(robot, 1), tmp_path / "logs" / name / "a.npz")
    urdf = str(tmp_path / "tiny.urdf")
    fleet = Fleet.build(tmp_path / "logs", tmp_path / "store", robot=urdf, workers=1)
    assert fleet.robots == ["left", "right"]
    (doubt,) = fleet.identify()["left"].verdict.doubts
    assert (doubt.kind, doubt.blocks) == (DoubtKind.ASSUMED, False)
    assert doubt.words == "no log of left has a load: all 1 count as empty"
    assert [payload.ok for payload in fleet.weigh()] == [True, True]
    pattern = f"{tmp_path}/logs/*/*.npz"
    assert Fleet.build(pattern, tmp_path / "store", robot=urdf, workers=1).built["unchanged"] == 2
    again = Fleet.build(pattern, tmp_path / "store", robot=sy.load_robot(urdf), workers=1)
    assert again.built["unchanged"] == 2
    with pytest.raises(UnreadableFile, match="does not say what its arms are; give `robot`"):
        Fleet.build(pattern, tmp_path / "store", workers=1)
    joint = robot.joint_names[0]
    words = ("fleet", "build", pattern, "-o", "held", "--workers", "1", "--robot", urdf, "--lock")
    held = steelyard(*words, f"{joint}=0.1", cwd=tmp_path)
    assert held.returncode == 1
    assert f"has {robot.n} joints" in held.stdout + held.stderr  # the arm has one less
    assert "has no movable joint 'none'" in steelyard(*words, "none=0", cwd=tmp_path).stderr


def test_logs_at_an_address(tmp_path):
    from fsspec.implementations.memory import MemoryFileSystem

    write(log(tiny_arm(tmp_path), 1), tmp_path / "a.npz")
    MemoryFileSystem().pipe_file("/fleet/left/a.npz", (tmp_path / "a.npz").read_bytes())
    urdf = str(tmp_path / "tiny.urdf")
    fleet = Fleet.build("memory://fleet", tmp_path / "store", robot=urdf, workers=1)
    assert [log.ok for log in fleet.logs] == [True]
    assert (
        Fleet.build("memory://fleet", tmp_path / "store", robot=urdf, workers=1).built["unchanged"]
        == 1
    )


REFUSED = {
    "robot,model,file\na,tiny.urdf,x.npz\na,ur10,y.npz\n": "'a' has two models",
    "robot,model,file\na,tiny.urdf,x.npz\nb,tiny.urdf,x.npz\n": "x.npz is listed for two arms, 'a'"
    " and 'b'",
    "robot,model,file\n": "there are no logs in this catalogue",
    "robot,file\na,x.npz\n": "row 1: 'model' is missing",
    "robot,model,file,colour\na,ur10,x.npz,red\n": "a catalogue has no column 'colour'",
    "robot,model,file,file\na,ur10,x.npz,y.npz\n": "column 'file' stands in it twice",
    "robot,model,file,time\na,ur10,x.npz,1e300\n": "row 1: time is 1e+300, not a number of seconds",
    "robot,model,file,load\na,ur10,x.npz,-1\n": "row 1: 'load' must be a finite number from 0 to",
    "robot,model,file,load\na,ur10,x.npz,1e9\n": "row 1: 'load' must be a finite number from 0 to",
    "robot,model,file,start_s\na,ur10,x.npz,1e9\n": "row 1: 'start_s' must be a finite number from",
    "robot,model,file,start_s,end_s\na,ur10,x.npz,5,1\n": "row 1: the work cycle of x.npz ends at 1"
    " s, and begins at 5 s",
    "robot,model,file,temperature\na,ur10,x.npz,1e9\n": "row 1: 'temperature' must be a finite",
    "robot,model,file,time\na,ur10,x.npz,yesterday\n": "row 1: time is"
    " 'yesterday'; write it as 2026-01-31 or",
    "robot,model,file\na\x00,ur10,x.npz\n": "row 1: 'robot' must be a text without control",
    f"robot,model,file\n{'a' * 300},ur10,x.npz\n": "row 1: 'robot' is too long for the name of",
    "robot,model,file,load\na,ur10,x.npz,heavy\n": "row 1: could not convert string to float:"
    " 'heavy'",
}


def test_times_are_texts_or_seconds_since_1970(tmp_path):
    path = tmp_path / "catalogue.csv"
    path.write_text("robot,model,file,time\na,ur10,x.npz,1772344800\na,ur10,y.npz,1772344800.5\n")
    times = [entry.time for entry in read_catalogue(str(path))]
    assert times == [START, START + timedelta(seconds=0.5)]
    path.write_text("robot,model,file,time\na,ur10,x.npz,2026-03-01T07:00:00+01:00\n")
    assert [entry.time for entry in read_catalogue(str(path))] == [START]


@pytest.mark.parametrize(("text", "words"), REFUSED.items(), ids=range(len(REFUSED)))
def test_catalogues_that_are_refused(tmp_path, text, words):
    tiny_arm(tmp_path)
    (tmp_path / "catalogue.csv").write_text(text)
    done = steelyard("fleet", "build", "catalogue.csv", "-o", "store", cwd=tmp_path)
    assert done.returncode == 2
    assert words in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "store").exists()


def test_a_device_is_no_log(tmp_path):
    """Reading /dev/zero would not end."""
    tiny_arm(tmp_path)
    (tmp_path / "catalogue.csv").write_text("robot,model,file\na,tiny.urdf,/dev/zero\n")
    fleet = Fleet.build(str(tmp_path / "catalogue.csv"), str(tmp_path / "store"), workers=1)
    (log,) = fleet.logs
    assert not log.ok
    assert "/dev/zero is a device, not a file" in log.reason


def test_places_that_are_refused(tmp_path, scene, monkeypatch):
    folder, catalogue, _, _ = scene
    with pytest.raises(UnreadableFile, match="there is no catalogue"):
        Fleet.build(tmp_path / "none.csv", tmp_path / "store")
    with pytest.raises(UnreadableFile, match=r"a catalogue is a \.csv or \.parquet table"):
        Fleet.build(folder / "tiny.urdf", tmp_path / "store")
    with pytest.raises(UnreadableFile, match="is not the store of a fleet"):
        Fleet(tmp_path)
    (tmp_path / "note.txt").write_text("x")
    with pytest.raises(UnreadableFile, match="holds other files"):
        Fleet.build(catalogue, tmp_path, workers=1)
    other = tmp_path / "other"
    other.mkdir()
    (other / "fleet.json").write_text(json.dumps({"steelyard": "fleet", "version": 99}))
    with pytest.raises(UnreadableFile, match="version 99"):
        Fleet(other)
    monkeypatch.setattr("steelyard.fleet._engine._CONNECT_TIMEOUT_S", 0.5)
    with pytest.raises(SteelyardError, match=r"the scheduler tcp://127\.0\.0\.1:1 does not answer"):
        Fleet.build(catalogue, tmp_path / "store", scheduler="tcp://127.0.0.1:1")


def test_a_full_disk_is_one_line_and_what_is_there_stays(tmp_path, monkeypatch):
    import pyarrow.parquet as pq

    catalogue, _ = tiny_fleet(tmp_path, arms=1, logs=4)
    write_table, written = pq.write_table, []

    def full(table, where, **options):
        if len(written) == 2:
            raise OSError(28, "No space left on device")
        written.append(where)
        write_table(table, where, **options)

    monkeypatch.setattr(pq, "write_table", full)
    with pytest.raises(UnreadableFile, match="the disk is full; its files are complete"):
        Fleet.build(catalogue, tmp_path / "store", workers=1)
    monkeypatch.undo()
    assert len(Fleet(tmp_path / "store").logs) == 2
    assert dict(Fleet.build(catalogue, tmp_path / "store", workers=1).built)["new"] == 2


def test_clocks_that_overlap_and_contents_twice_are_named(tmp_path):
    catalogue, rows = tiny_fleet(tmp_path, arms=1, logs=4)
    rows[1]["time"] = (START + timedelta(seconds=4)).isoformat()
    (tmp_path / "copy.npz").write_bytes((tmp_path / "arm0-03.npz").read_bytes())
    rows.append({**rows[3], "file": "copy.npz", "time": (START + timedelta(days=9)).isoformat()})
    write_catalogue(tmp_path, rows)
    done = steelyard("fleet", "build", catalogue, "-o", "store", "--workers", "1", cwd=tmp_path)
    assert done.returncode == 0
    first, second = done.stdout.splitlines()[1:3]
    assert re.fullmatch(
        r"Note: arm0: arm0-01.npz begins \d s before arm0-00.npz ends: is a clock .*", first
    )
    assert second == "Note: arm0: arm0-03.npz and copy.npz have the same content."
    assert len(Fleet(tmp_path / "store", workers=1).identify()["arm0"].made_from) == 1


def test_currents_need_gains(tmp_path):
    catalogue, _ = tiny_fleet(tmp_path, arms=1, logs=1)
    one = log(tiny_arm(tmp_path), 1)
    write(replace(one, tau=None, current=one.tau), tmp_path / "arm0-00.npz")
    fleet = Fleet.build(catalogue, tmp_path / "store", workers=1)
    (unusable,) = fleet.logs
    assert "no gains: give a model that was identified from currents" in unusable.reason


@pytest.mark.parametrize("package", ["distributed", "fsspec.core"])
def test_what_is_missing_is_named(scene, tmp_path, monkeypatch, package):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtra, match=r"pip install 'steelyard\[fleet\]'"):
        Fleet.build(scene[1], tmp_path / "store", workers=2)


def test_a_refused_number_of_processes_leaves_no_store(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    catalogue, _ = tiny_fleet(tmp_path, arms=1, logs=1)
    with pytest.raises(UnknownName, match="`workers` must be a number from 1 to 1024"):
        Fleet.build(catalogue, tmp_path / "refused", workers=0)
    assert not (tmp_path / "refused").exists()
