"""`steelyard picks`, `picks-live`, `picks-preview`, and the same log as a stream."""

import csv
import json
import sys
from dataclasses import replace

import numpy as np
import pytest

import steelyard as sy
from conftest import steelyard
from picking_shifts import CARRY, HOUSING, arm, faulty, model, plan, shift
from steelyard.cli.picks import AlarmRunner
from steelyard.errors import InvalidRecording, InvalidSamples, UnreadableFile
from steelyard.io._parts import read_parts
from steelyard.live import PickStreamOptions, ReplaySource, live_picks
from steelyard.live._picks import PickWatcher
from steelyard.live._source import Event, EventKind, Row, Stream
from steelyard.payload import Part
from steelyard.picking import Decision, Pick, PickingOptions, Shift
from steelyard.simulation import PlannedFault
from steelyard.workflow._picks import Picking

TABLE = "name,mass,tolerance,cx,cy,cz,com_tolerance\nhousing,2.0,0.02,0,0.01,0.08,0.01\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with a model, a table of parts and a log with two faults."""
    here = tmp_path_factory.mktemp("picks")
    model().save(here / "model.json")
    (here / "parts.csv").write_text(TABLE)
    log, _ = faulty()
    sy.write(log.rows(log.t < 28.5), here / "log.parquet")
    return here


def test_the_command_prints_a_line_per_pick_and_ends_with_1(folder):
    output = folder / "picks.csv"
    seen = folder / "seen.txt"
    script = f"import sys; open({str(seen)!r}, 'a').write(sys.stdin.read())"
    done = steelyard(
        *("picks", folder / "log.parquet", "--model", folder / "model.json"),
        *("--parts", folder / "parts.csv", "-o", output, "--report", folder / "page.html"),
        *("--gripper", "gripper"),
        *("--on-alarm", f'{sys.executable} -c "{script}"'),
    )
    assert done.returncode == 1
    lines = done.stdout.replace("+-", "±").splitlines()
    assert lines[0].split()[:2] == ["pick", "closed"]
    assert lines[0].startswith("pick   closed at  mass ± (95 %)")
    assert [line.split()[0] for line in lines[1:7]] == ["1", "2", "3", "4", "5", "6"]
    assert "missing" in lines[4]
    assert "double" in lines[6]
    assert " ± " in lines[1]
    assert "6 picks: 4 good, 1 missing, 1 double" in done.stdout
    assert len(output.read_text().splitlines()) == 7
    alarms = [json.loads(line) for line in seen.read_text().splitlines()]
    assert [alarm["decision"] for alarm in alarms] == ["missing", "double"]
    page = (folder / "page.html").read_text()
    assert "Friction over the shift" in page
    assert "6 picks, 2 alarms" in page
    assert '<a href="#pick-4-missing-torques' in page
    assert page.count('id="pick-') == 2


def test_a_stream_gives_the_picks_of_the_log(folder):
    """The same rows as a log and as a stream: masses agree to a tenth of their deviations."""
    given = PickingOptions(closed="high")
    log = sy.read(folder / "log.parquet")
    batch = Picking(model(), log, (HOUSING,), given).shift
    seen = []
    early = []
    order = []
    stream = PickStreamOptions(
        on_pick=lambda pick: (seen.append(pick), order.append(pick.number)),
        on_early=lambda answer: (early.append(answer), order.append(answer.number)),
    )
    source = ReplaySource(str(folder / "log.parquet"), speed=None)
    live = live_picks(source, model(), parts=[HOUSING], options=given, stream=stream)
    assert [pick.decision for pick in live.picks] == [pick.decision for pick in batch.picks]
    assert seen == list(live.picks)
    assert order == [number for pick in seen for number in (pick.number, pick.number)]
    assert [answer.decision for answer in early][3] is Decision.MISSING
    for answer, pick in zip(early, live.picks, strict=True):
        assert answer.close_s == pick.close_s
        assert abs(answer.mass.value - pick.early.value) < pick.early.std
        assert 0.5 * pick.early.std < answer.mass.std < 2 * pick.early.std
    for one, other in zip(live.picks, batch.picks, strict=True):
        assert abs(one.mass.value - other.mass.value) < 0.2 * other.mass.std
        assert abs(one.close_s - other.close_s) < 0.02


def test_a_known_pick_of_a_stream_counts_with_the_centre_of_its_own_part(folder):
    other = Part("other", 2.0, 0.02, (0.25, 0.0, 0.1), 0.01)
    given = PickingOptions(closed="high", expect=("housing",), known={2: 2.0})
    source = ReplaySource(str(folder / "log.parquet"), speed=None)
    alone, second = (
        live_picks(source, model(), parts=parts, options=given)
        for parts in ([HOUSING], [other, HOUSING])
    )
    for one, reference in zip(second.picks, alone.picks, strict=True):
        if reference.relative is not None:
            assert one.relative.value == pytest.approx(reference.relative.value, abs=0.01)


def test_the_position_of_a_gripper_in_a_stream_needs_a_threshold(folder):
    with Stream(ReplaySource(str(folder / "log.parquet"), speed=None)) as opened:
        rows = [item for item in opened.items(60.0) if isinstance(item, Row)]
        columns = opened.columns
    place = columns.index("gripper")
    rows = [
        row._replace(values=(*row.values[:place], 80.0 - 50 * row.values[place]))
        for row in rows[:1500]
    ]

    def picked(options):
        watcher = PickWatcher.of(model(), (HOUSING,), options, columns, "gripper", "the cell")
        return [str(pick.decision) for row in rows for pick in watcher.taken(row)]

    with pytest.raises(InvalidSamples, match="the cell: the gripper column holds 80, not 0 or 1"):
        picked(PickingOptions(closed="low"))
    assert picked(PickingOptions(closed="low", threshold=55.0)) == ["good", "good"]


def test_a_known_mass_of_no_pick_is_said_after_a_stream(folder):
    source = ReplaySource(str(folder / "log.parquet"), speed=None)
    options = PickingOptions(closed="high", known={1: 2.0, 999: 1.0})
    found = live_picks(source, model(), parts=[HOUSING], options=options)
    assert [note for note in found.notes if "whose mass is given" in note] == [
        f"there is no pick 999, whose mass is given: the log has {len(found)}"
    ]


@pytest.mark.parametrize("bit", [None, 0])
def test_a_gripper_cannot_send_any_number(bit):
    log = faulty()[0]
    absurd = replace(log, gripper=np.where(log.gripper > 0.5, 1e308, 0.0))
    options = PickingOptions(closed="high", bit=bit)
    with pytest.raises(InvalidRecording, match=r"reaches 1e\+308, which no gripper sends"):
        sy.picks(absurd, model(), options=options)
    columns = ("t", *(f"q_{k}" for k in range(6)), *(f"tau_{k}" for k in range(6)), "gripper")
    watcher = PickWatcher.of(model(), (), options, columns, "gripper", "the cell")
    with pytest.raises(InvalidRecording, match=r"reaches 1e\+308, which no gripper sends"):
        watcher._watch_gripper(Row(0.0, (0.0,) * 13 + (1e308,)))


def test_a_threshold_on_one_side_of_the_gripper_is_refused(folder):
    log = sy.read(folder / "log.parquet")
    given = PickingOptions(closed="high", threshold=3.0)
    with pytest.raises(InvalidRecording, match="between 0 and 1, on one side of the `threshold` 3"):
        sy.picks(log, model(), options=given)
    between = PickingOptions(closed="high", threshold=0.5)
    assert len(sy.picks(log, model(), options=between).picks) > 0
    with pytest.raises(InvalidSamples, match="a `bit` is 0 or 1 already"):
        PickingOptions(threshold=3.0, bit=1)
    assert PickingOptions(bit=1).threshold is None
    with pytest.raises(InvalidSamples, match="`threshold` must be a finite number, got nan"):
        PickingOptions(threshold=np.nan)


def test_a_stream_needs_the_polarity_and_the_column(folder):
    address = f"replay:{folder / 'log.parquet'}"
    with pytest.raises(InvalidSamples, match="closed='high'"):
        live_picks(address, model())
    done = steelyard(
        *("picks-live", address, "--model", folder / "model.json"),
        *("--gripper", "output", "--closed", "high"),
    )
    assert done.returncode == 2
    assert "describes its own columns" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_statements_about_columns_count_for_a_replayed_log_and_are_refused_for_an_arm(folder):
    stated = ("--model", folder / "model.json", "--closed", "high", "--column", "tau=nothing")
    replayed = steelyard("picks-live", f"replay:{folder / 'log.parquet'}", *stated)
    assert replayed.returncode == 2
    assert "describes its own columns" in replayed.stderr
    arm_itself = steelyard("picks-live", "ur://127.0.0.1:9", *stated)
    assert arm_itself.returncode == 2
    assert "can only be stated for a recording" in arm_itself.stderr


def test_a_slow_command_at_an_alarm_does_not_hold_up_the_rows(tmp_path):
    """Alarms return at once, and their commands run in their order."""
    seen = tmp_path / "seen.txt"
    go = tmp_path / "go"
    script = (
        "import pathlib, sys, time\n"
        f"while not pathlib.Path({str(go)!r}).exists(): time.sleep(0.01)\n"
        f"open({str(seen)!r}, 'a').write(sys.stdin.read())\n"
    )
    (tmp_path / "slow.py").write_text(script)
    alarms = [Pick(k, 0.0, 1.0, Decision.MISSING) for k in (1, 2)]
    with AlarmRunner(f"{sys.executable} {tmp_path / 'slow.py'}") as runner:
        for pick in alarms:
            runner.start(pick)
        assert not seen.exists()
        go.touch()
    assert [json.loads(line)["number"] for line in seen.read_text().splitlines()] == [1, 2]


def test_known_picks_and_a_dry_run_are_for_a_log(folder):
    log = folder / "log.parquet"
    words = ("--model", folder / "model.json", "--parts", folder / "parts.csv")
    for known in ("heavy", "first=2.0"):
        refused = steelyard("picks", log, *words, "--known", known)
        assert "--known is PICK=MASS, say 5=0.512" in refused.stderr
    for twice in (("1=0.5", "1=0.7"), ("1=0.5", "01=0.7")):
        refused = steelyard("picks", log, *words, "--known", twice[0], "--known", twice[1])
        assert refused.returncode == 2
        assert "twice" in refused.stderr
    lines = steelyard("picks", log, *words, "--known", "999=1.0", "--follow")
    assert "Note: there is no pick 999, whose mass is given: the log has 6." in lines.stderr
    empty, _ = shift(arm(), plan(cycles=2, carry=CARRY), 5)
    sy.write(replace(empty, tau=arm().torque(*_derived(empty))), folder / "dry.parquet")
    done = steelyard("picks", log, *words, "--known", "1=2.0", "--dry", folder / "dry.parquet")
    assert done.returncode == 1, done.stderr
    assert "6 picks: " in done.stdout


def test_a_log_and_a_stream_have_their_own_commands_and_options(folder):
    log = folder / "log.parquet"
    stated = ("--model", folder / "model.json", "--closed", "high")
    for option in (
        "--early",
        "--seconds=3",
        "--record=a.parquet",
        "--page=0",
        "--publish=ros2://a",
    ):
        refused = steelyard("picks", log, *stated, option)
        assert refused.returncode == 2
        assert f"No such option: {option.partition('=')[0]}" in refused.stderr
    refused = steelyard("picks-live", f"replay:{log}", *stated, "--dry", log)
    assert "No such option: --dry" in refused.stderr
    stream = steelyard("picks", f"replay:{log}", *stated)
    assert stream.returncode == 2
    assert "is a stream: weigh its picks with steelyard picks-live" in stream.stderr
    file = steelyard("picks-live", log, *stated)
    assert file.returncode == 2
    assert f"with steelyard picks, or replay it with replay:{log}" in file.stderr
    table = folder / "both.csv"
    steelyard("picks", log, "--model", folder / "model.json", "-o", table)
    with table.open() as file:
        rows = list(csv.DictReader(file))
    weighed = [row for row in rows if row["mass"]]
    assert len(weighed) == 6
    for row in weighed:
        difference = abs(float(row["early"]) - float(row["mass"]))
        assert difference < 2 * float(row["early_half_width"])


def test_a_stream_gives_lines_files_and_the_exit_code_of_its_picks(folder, monkeypatch):
    """The command, with a log that is replayed as fast as its rows are taken."""

    def replayed(address, joint_names):
        path = address.removeprefix("replay:")
        return ReplaySource(path, speed=None, joint_names=joint_names)

    monkeypatch.setattr("steelyard.live._picks._source_of", replayed)
    words = (
        *("picks-live", f"replay:{folder / 'log.parquet'}", "--closed", "high"),
        *("--model", folder / "model.json", "--parts", folder / "parts.csv"),
    )
    done = steelyard(
        *words, *("-o", folder / "live.json", "--report", folder / "live.html", "--tool", "left")
    )
    assert done.returncode == 1, done.stderr
    lines = done.stdout.replace("+-", "±").splitlines()
    assert lines[0].split()[:2] == ["pick", "closed"]
    assert lines[0].startswith("pick   closed at  mass ± (95 %)")
    assert [line.split()[0] for line in lines[1:7]] == ["1", "2", "3", "4", "5", "6"]
    assert "missing" in lines[4]
    assert "double" in lines[6]
    assert " ± " in lines[1]
    assert "6 picks: 4 good, 1 missing, 1 double" in done.stdout
    assert Shift.load(folder / "live.json").tool == "left"
    assert "6 picks, 2 alarms" in (folder / "live.html").read_text()
    followed = steelyard(*words, "--follow", "--early", "--known", "999=1.0")
    answers = [json.loads(line) for line in followed.stdout.splitlines()]
    assert [answer["number"] for answer in answers] == [k for k in range(1, 7) for _ in range(2)]
    assert ["decision" in answer for answer in answers] == [False, True] * 6
    assert "Note: there is no pick 999" in followed.stderr
    record = steelyard(*words, "--json")
    assert json.loads(record.stdout)["alarms"] == [4, 6]


def test_wrong_addresses_of_the_page_and_the_bridge_are_refused(folder):
    stream = f"replay:{folder / 'log.parquet'}"
    stated = ("--model", folder / "model.json", "--closed", "high")
    page = steelyard("picks-live", stream, *stated, "--page", "http")
    assert page.returncode == 2
    assert "--page is [HOST:]PORT, say 8080; got 'http'" in page.stderr
    bridge = steelyard("picks-live", stream, *stated, "--publish", "ur://127.0.0.1")
    assert bridge.returncode == 2
    assert "--publish is ros2://HOST[:PORT] or ros2-node:" in bridge.stderr


def test_a_robot_is_enough_with_a_dry_cycle(folder, tmp_path):
    """The command without an identified model; without the dry cycle it is one clear line."""
    alone = steelyard("picks", folder / "log.parquet", "--model", "ur10e")
    assert alone.returncode == 2
    assert "or record the same path without parts (--dry)" in alone.stderr
    assert len(alone.stderr.splitlines()) == 1
    faults = tuple(PlannedFault(k, "missing") for k in (1, 2))
    sy.write(shift(arm(), plan(cycles=2, faults=faults), 103)[0], tmp_path / "dry.parquet")
    done = steelyard(
        *("picks", folder / "log.parquet", "--model", "ur10e", "--dry", tmp_path / "dry.parquet"),
        *("--parts", folder / "parts.csv"),
    )
    assert done.returncode == 1
    assert "6 picks: 4 good, 1 missing, 1 double" in done.stdout
    assert "Note: the arm is known from the dry cycle alone" in done.stdout


def test_a_stream_goes_on_after_its_clock_went_back(folder, monkeypatch):
    """The same picks before and after a restart of the sender; few samples are kept."""
    monkeypatch.setattr("steelyard.live._picks._MAX_STRETCH_S", 5.0)
    source = ReplaySource(str(folder / "log.parquet"), speed=None)
    options = PickingOptions(closed="high", bit=0)
    with Stream(source) as opened:
        rows = [item for item in opened.items(60.0) if isinstance(item, Row)]
        columns = opened.columns
    watcher = PickWatcher.of(model(), (HOUSING,), options, columns, "gripper", "log")
    without_gripper = np.array(rows[5].values)
    without_gripper[columns.index("gripper")] = np.nan
    rows[5] = rows[5]._replace(values=without_gripper)
    half = [row for row in rows if row.t - rows[0].t < 12.0]
    before = [pick for row in half for pick in watcher.taken(row)]
    assert before
    assert not list(watcher.taken(Event(EventKind.CLOCK, "the clock went back", rows[0].t)))
    after = [pick for row in half for pick in watcher.taken(row)]
    assert [pick.decision for pick in after] == [pick.decision for pick in before]
    for one, other in zip(after, before, strict=True):
        interval = np.hypot(one.mass.half_width, other.mass.half_width)
        assert abs(one.mass.value - other.mass.value) < interval
    for t in np.arange(0.0, 40.0, 0.01):
        watcher._samples.append((t, None, None))
        watcher._drop_old_samples(t)
    assert len(watcher._samples) <= 1001


def test_a_preview_says_what_a_motion_shows():
    log, _ = shift(arm(), plan(cycles=2, carry=CARRY), 5)
    dry = replace(log, tau=arm().torque(*_derived(log)))
    small = replace(HOUSING, name="cover", mass=0.1, tolerance=0.001)
    found = Picking(model(), dry, (HOUSING, small), PickingOptions(closed="high")).visible
    answers = {(one.part, one.fault): one for one in found}
    assert answers["housing", "a missing part instead"].visible
    assert answers["housing", "two parts instead"].visible
    hidden = answers["cover", "+8 %"]
    assert not hidden.visible
    assert hidden.needed < hidden.given
    assert "this motion gives" in hidden.sentence


def test_a_preview_knows_friction_from_open_stretches_alone():
    """In the shift, the carries have parts and say nothing about friction."""
    nothing = tuple(PlannedFault(k + 1, "missing") for k in range(6))
    dry, picks = shift(arm(), plan(cycles=6, carry=CARRY, faults=nothing), 5)
    options = PickingOptions(closed="high")
    often = Picking(model(), dry, (HOUSING,), options).visible[0]
    still_closed = np.where(dry.t > picks[1].close_s, 1.0, dry.gripper[:, 0])
    once = replace(dry, gripper=still_closed[:, None])
    assert Picking(model(), once, (HOUSING,), options).visible[0].given > 1.3 * often.given
    unlabelled = Picking(model(), replace(dry, gripper=None), (HOUSING,), options).visible[0]
    assert unlabelled.given == pytest.approx(often.given, rel=0.05)


def _derived(log):
    samples = sy.prepare(replace(log, gripper=None), sy.Preparation(cutoff_hz=20.0))
    return samples.q, samples.v, samples.a


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("name,weight\na,1\n", "has the columns name and mass"),
        ("name,mass,colour\na,1,red\n", "unknown column 'colour'"),
        ("name,mass\na,heavy\n", "line 2: mass is 'heavy', not a number"),
        ("name,mass\na,-1\n", "line 2: 'mass' must be"),
        ("name,mass\na,1\na,2\n", "'a' is there twice"),
        ("name,mass\n,1\n", "needs a name and a mass"),
        ("name,mass\n\na,1\n\nb,1e9\n", "parts.csv, line 5: 'mass' must be .* up to 5000, got"),
        ("name,mass,tolerance\na,1,1e9\n", "line 2: 'tolerance' must be .* from 0 to 5000"),
        ("name,mass,cy\na,1,80\n", r"line 2: 'com\[1\]' must be .* from -10 to 10, got 80"),
        ("name,mass,size\na,1,1e6\n", "line 2: 'size' must be .* up to 10, got"),
        ("name,mass,com_tolerance\na,1,1e6\n", "line 2: 'com_tolerance' must be .* up to 10"),
        ("name,mass,mass\na,1,2\n", "the column 'mass' is there twice"),
        ("name,mass\na,1\nb,0,5\n", "line 3: it has 3 cells for 2 columns; a decimal comma"),
        ('name,mass\n"a\tb",1\n', "line 2: 'name' must be a text without control characters"),
    ],
)
def test_wrong_tables_of_parts_are_refused(tmp_path, text, words):
    (tmp_path / "parts.csv").write_text(text)
    with pytest.raises(UnreadableFile, match=words):
        read_parts(tmp_path / "parts.csv")


def test_a_simulated_shift_from_a_plan(tmp_path):
    (tmp_path / "cycle.toml").write_text(
        f"carry = {CARRY}\ncarry_s = 0.8\nback_s = 0.8\ncycles = 1\n"
        '[[parts]]\nname = "a"\nmass = 1.0\n[[faults]]\npick = 1\nkind = "missing"\n'
    )
    done = steelyard(
        *("simulate", "ur10e", "--cycle", tmp_path / "cycle.toml"),
        *("-o", tmp_path / "log.parquet"),
    )
    assert "faults: 1 missing" in done.stdout
    log = sy.read(tmp_path / "log.parquet")
    assert set(log.gripper[:, 0]) == {0.0, 1.0}
    (tmp_path / "cycle.toml").write_text("carry = [[0, 1], [1, 2]]\nparts = []\n")
    done = steelyard(
        *("simulate", "ur10e", "--cycle", tmp_path / "cycle.toml"),
        *("-o", tmp_path / "log.parquet"),
    )
    assert done.returncode == 2
    assert "a shift needs" in done.stderr
