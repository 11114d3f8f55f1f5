"""The external force: frames, second zero, uncertainty, refusals; sensor and payload files."""

import re
from dataclasses import fields, replace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from steelyard.cli.output import Output
from steelyard.control._contact_force import ZeroKeeper, contact_force
from steelyard.drawing import save_picture
from steelyard.errors import InvalidSamples, UnreadableFile
from steelyard.inertia import InertialParameters
from steelyard.io._wrist import (
    SensorDescription,
    write_contact_force,
)
from steelyard.payload import Payload
from steelyard.recording._columns import Requested
from steelyard.report import Table
from steelyard.report._control import contact_page
from steelyard.report._payload import wrench_page
from steelyard.verdict import Doubt, DoubtKind, Verdict
from steelyard.workflow import _wrist
from steelyard.wrist import WrenchSamples, WristPayload, WristSensor
from steelyard.wrist._regressor import BaseGravity, features, wrench_regressor

BODY = InertialParameters.from_com(4.0, [0.01, 0.02, 0.1], np.diag([0.05, 0.06, 0.03]), "sensor")
DRIFT = np.array([2.0, -1.0, 3.0, 0.1, 0.2, -0.1])
TILT = np.array([0.02, -0.03])


@pytest.fixture
def payload(rng):
    half = 0.01 * rng.normal(size=(18, 18))
    return WristPayload(
        BODY,
        BODY,
        drift=DRIFT,
        inclination=TILT,
        nominal_gravity=np.array([0.0, 0.0, -9.81]),
        full_covariance=half @ half.T,
        noise=np.full(6, 0.1),
        trend=np.zeros(6),
        trend_std=np.ones(6),
        method="test",
        verdict=Verdict("known"),
        made_by=("by hand",),
    )


@pytest.fixture
def plain(payload):
    """The same numbers by a method that gives no intervals."""
    unknown = np.diag(np.full(18, np.inf))
    doubt = Doubt(DoubtKind.TOO_UNCERTAIN, "no intervals are given")
    return replace(
        payload,
        full_covariance=unknown,
        gives_intervals=False,
        verdict=Verdict("as printed", (doubt,)),
    )


def moving(payload, *, N=600, still=150, force=None, noise=0.0, seed=0):
    """A sensor that rests, moves, and rests again; with a force in the base frame at its origin."""
    rng = np.random.default_rng(seed)
    t = np.arange(N) / 100
    speed = np.where((np.arange(N) >= still) & (np.arange(N) < N - still), 1.0, 0.0)
    w = speed[:, None] * np.array([0.5, -0.3, 0.8])
    R = Rotation.from_rotvec(np.cumsum(w, axis=0) / 100).as_matrix()
    a, alpha = speed[:, None] * rng.normal(size=(N, 3)), speed[:, None] * rng.normal(size=(N, 3))
    g = np.einsum("nji,j->ni", R, BaseGravity(payload.nominal_gravity).tilted(TILT))
    wrench = wrench_regressor(features(g, a, w, alpha)) @ BODY.vector + DRIFT
    if force is not None:
        wrench[:, :3] += np.einsum("nji,nj->ni", R, force)
    wrench += noise * rng.normal(size=wrench.shape)
    return WrenchSamples(
        t,
        wrench,
        max(noise, 1e-6) ** 2 * np.eye(6),
        R,
        a,
        w,
        alpha,
        np.zeros((N, 9, 9)),
        WristSensor(),
    )


def test_nothing_is_left_without_contact(payload):
    contact = contact_force(payload, moving(payload))
    np.testing.assert_allclose(contact.external, 0, atol=1e-10)
    np.testing.assert_allclose(contact.raw, contact.load + contact.drift, atol=1e-10)
    assert contact.verdict.sentence == "load and zero drift were subtracted"
    assert contact.force.max() < 1e-9
    assert contact.torque.max() < 1e-9


def test_a_force_is_seen_in_every_frame(payload):
    push = np.tile([5.0, -3.0, 7.0], (600, 1))
    samples = moving(payload, force=push)
    base = contact_force(payload, samples, frame="base")
    np.testing.assert_allclose(base.external[:, :3], push, atol=1e-9)
    sensor = contact_force(payload, samples)
    T = np.eye(4)
    T[:3, :3] = Rotation.from_rotvec([0.3, -0.5, 0.2]).as_matrix()
    T[:3, 3] = [0.1, 0.2, -0.3]
    tool = contact_force(payload, samples, frame="tool", T_sensor_tool=T)
    f, tau = sensor.external[:, :3], sensor.external[:, 3:]
    np.testing.assert_allclose(tool.external[:, :3], f @ T[:3, :3], atol=1e-9)
    np.testing.assert_allclose(
        tool.external[:, 3:], (tau - np.cross(T[:3, 3], f)) @ T[:3, :3], atol=1e-9
    )
    for one in (base, tool):  # a rotation keeps the size of the uncertainty of a force
        expected = np.trace(sensor.covariance[:, :3, :3], axis1=1, axis2=2)
        np.testing.assert_allclose(np.trace(one.covariance[:, :3, :3], axis1=1, axis2=2), expected)


def test_the_uncertainty_is_that_of_wrong_payloads(payload, rng):
    samples = moving(payload)
    truth = np.concatenate([BODY.vector, DRIFT, TILT])
    spread = []
    for _ in range(400):
        value = rng.multivariate_normal(truth, payload.full_covariance)
        body = InertialParameters.from_vector(value[:10], "sensor")
        wrong = replace(payload, body=body, drift=value[10:16], inclination=value[16:])
        spread.append(contact_force(wrong, samples).external[[50, 300, 400]])
    expected = contact_force(payload, samples).std[[50, 300, 400]]
    np.testing.assert_allclose(np.std(spread, axis=0), expected, rtol=0.2)


def test_the_second_zero_at_the_start_and_after_rest(payload):
    moved = replace(payload, drift=DRIFT - [1.0, 2.0, -1.0, 0.2, 0, 0])
    samples = moving(payload, noise=0.01)
    plain = contact_force(moved, samples)
    assert plain.force.mean() == pytest.approx(np.sqrt(6), rel=0.01)
    for mode in ("start", "rest"):
        contact = contact_force(moved, samples, rezero=mode)
        assert contact.force[20:].max() < 0.1
        assert contact.zeroed_at[0] == pytest.approx(0.09)
    assert len(contact.zeroed_at) == 2
    assert contact.verdict.sentence == "the zero was determined again 2 times"


def test_a_contact_at_rest_is_never_taken_for_a_zero(payload):
    push = np.zeros((600, 3))
    push[:, 2] = 40.0
    contact = contact_force(payload, moving(payload, force=push), rezero="rest")
    np.testing.assert_allclose(contact.force, 40.0, rtol=1e-9)
    assert (
        contact.verdict.sentence
        == "no zero was determined again: the sensor was never at rest without contact"
    )


def test_the_keeper_is_a_value(payload):
    keeper = ZeroKeeper("rest", rest_rows=3)
    state = keeper.init()
    for _ in range(3):
        last, state = state, keeper.step(state, np.ones(6), 0.0)
    assert last.found == 0
    assert state.found == 1
    np.testing.assert_allclose(state.offset, 1.0)
    assert keeper.step(state, np.ones(6), 1.0).rows == 0
    with pytest.raises(
        InvalidSamples, match="`rezero` must be 'none', 'start' or 'rest', got 'always'"
    ):
        ZeroKeeper("always")
    with pytest.raises(InvalidSamples, match="rest_rows must be at least 1, got 0"):
        ZeroKeeper("rest", rest_rows=0)


def test_a_zero_that_moves_from_rest_to_rest_is_reported(payload):
    samples = moving(payload, N=4000, still=100, noise=0.01)
    speed = np.where((np.arange(4000) // 200) % 2, 1.0, 0.0)[:, None]
    wrench = samples.wrench - payload.wrench(samples.features(payload.gravity_base))
    drifting = replace(
        samples, angular_velocity=speed * [0.1, 0, 0], angular_acceleration=np.zeros((4000, 3))
    )
    load = payload.wrench(drifting.features(payload.gravity_base))
    drifting = replace(drifting, wrench=load + wrench + 0.01 * samples.t[:, None])
    contact = contact_force(payload, drifting)
    np.testing.assert_allclose(contact.trend, 0.01, rtol=0.1)
    assert "the zero drift changes, " in contact.verdict.sentence
    assert "per hour" in contact.verdict.sentence
    assert np.isnan(contact.temperature_trend).all()
    warm = contact_force(payload, drifting, temperature=20.0 + 0.5 * samples.t)
    np.testing.assert_allclose(warm.temperature_trend, 0.02, rtol=0.1)
    assert (warm.temperature_trend_std < 0.005).all()
    with pytest.raises(InvalidSamples, match="temperature must be 4000 finite numbers"):
        contact_force(payload, drifting, temperature=[20.0])


def test_a_payload_without_inertia_is_uncertain_in_motion(payload):
    full = payload.full_covariance.copy()
    full[range(4, 10), range(4, 10)] = np.inf
    blind = replace(payload, full_covariance=full)
    contact = contact_force(blind, moving(payload))
    assert (
        contact.std[300, 3:].max()
        > 1.5 * contact_force(payload, moving(payload)).std[300, 3:].max()
    )
    assert "the inertia of the load is unknown" in contact.verdict.sentence


def test_what_it_refuses(payload):
    samples = moving(payload)
    with pytest.raises(
        InvalidSamples, match="frame must be 'sensor', 'tool' or 'base', got 'world'"
    ):
        contact_force(payload, samples, frame="world")
    with pytest.raises(InvalidSamples, match="the frame 'tool' needs T_sensor_tool"):
        contact_force(payload, samples, frame="tool")


def test_a_payload_goes_through_a_file_with_every_field(payload, tmp_path):
    full = payload.full_covariance.copy()
    full[5, 5] = np.inf
    written = replace(payload, full_covariance=full, trend=np.full(6, np.nan))
    written.save(tmp_path / "payload.json")
    back = WristPayload.load(tmp_path / "payload.json")
    for item in fields(WristPayload):
        one, other = getattr(written, item.name), getattr(back, item.name)
        if isinstance(one, np.ndarray):
            np.testing.assert_array_equal(one, other)
        elif isinstance(one, InertialParameters):
            np.testing.assert_array_equal(one.vector, other.vector)
            assert one.frame == other.frame
        else:
            assert one == other


def test_a_payload_of_a_sensor_is_a_payload(payload):
    assert str(payload).startswith("4.000 \u00b1 ")
    assert "in frame 'sensor'" in str(payload)
    np.testing.assert_array_equal(payload.covariance, payload.full_covariance[:10, :10])
    assert not payload.covariance.flags.writeable
    names = [x.name for x in payload.quantities]
    assert names[0] == "mass"
    assert names[-3:] == ["zero drift tz", "tilt of the base U", "tilt of the base V"]
    assert "zero drift fx" in payload._repr_html_()
    both = payload.together_with(payload)
    assert both.mass == pytest.approx(8.0)
    np.testing.assert_allclose(both.covariance, 2 * payload.covariance)
    assert type(both) is Payload


def test_payload_files_that_are_none(tmp_path):
    with pytest.raises(UnreadableFile, match="no such file"):
        WristPayload.load(tmp_path / "nothing.json")
    path = tmp_path / "x.json"
    path.write_text("{")
    with pytest.raises(UnreadableFile, match="is not JSON"):
        WristPayload.load(path)
    path.write_text("{}")
    with pytest.raises(UnreadableFile, match="is not a wrist payload file of steelyard"):
        WristPayload.load(path)
    path.write_text('{"steelyard": "wrist payload", "version": 5}')
    with pytest.raises(UnreadableFile, match="is not a whole wrist payload file"):
        WristPayload.load(path)


def test_a_page_shows_the_drift_of_the_zero_where_something_is_known_of_it(payload):
    contact = contact_force(payload, moving(payload, noise=0.1), rezero="rest")
    unknown = np.full(6, np.inf)
    nothing = replace(contact, trend_std=unknown, temperature_trend_std=unknown)
    drifting = replace(nothing, trend_std=np.where(np.arange(6) == 2, 1e-4, np.inf))
    tables = [
        [part.caption for part in contact_page(each).sections[1].parts if isinstance(part, Table)]
        for each in (nothing, drifting)
    ]
    assert tables[0] == []
    assert len(tables[1]) == 1
    assert tables[1][0].startswith("Drift of the zero")


def test_a_contact_is_written_and_drawn(payload, tmp_path):
    import pyarrow.parquet as pq

    contact = contact_force(payload, moving(payload, noise=0.1), rezero="rest")
    write_contact_force(contact, tmp_path / "contact.parquet")
    table = pq.read_table(tmp_path / "contact.parquet")
    np.testing.assert_array_equal(table["external_fz"].to_numpy(), contact.external[:, 2])
    np.testing.assert_array_equal(table["std_tx"].to_numpy(), contact.std[:, 3])
    assert table.schema.metadata[b"frame"] == b"sensor"
    save_picture(contact_page(contact).picture, tmp_path / "contact.png")
    assert (tmp_path / "contact.png").stat().st_size > 20_000


SENSOR = """
name = "wrist"
convention = "sensor_on_load"
translation = [0.0, 0.0, 0.04]
rotation_rpy_degrees = [0.0, 0.0, 90.0]
range = [100, 100, 200, 10, 10, 10]
noise = [0.1, 0.1, 0.1, 0.01, 0.01, 0.01]
quaternion_order = "wxyz"
quaternion_of = "sensor_from_base"
rate_hz = 100
[columns]
wrench = ["a", "b", "c", "d", "e", "f"]
quaternion = ["w", "x", "y", "z"]
[scale]
wrench = 2.0
"""


def test_a_sensor_is_described_and_its_table_read(tmp_path, rng):
    (tmp_path / "sensor.toml").write_text(SENSOR)
    description = SensorDescription.load(tmp_path / "sensor.toml")
    assert description.sensor.name == "wrist"
    np.testing.assert_allclose(description.sensor.T_flange_sensor[:3, 0], [0, 1, 0], atol=1e-12)
    R = Rotation.random(5, random_state=2)
    quaternion = R.inv().as_quat()[:, [3, 0, 1, 2]]
    w = rng.normal(size=(5, 6))
    rows = np.column_stack([w, quaternion])
    text = "".join(
        ",".join(row) + "\n" for row in [list("abcdefwxyz"), *np.char.mod("%.17g", rows).tolist()]
    )
    (tmp_path / "log.csv").write_text(text)
    (tmp_path / "log.tsv").write_text("# by hand\n" + text.replace(",", "\t"))
    (tmp_path / "comma.csv").write_text(text.replace(",", ";").replace(".", ","))
    names = ("log.csv", "log.tsv", "comma.csv", "log.npz", "log.parquet")
    for path in (tmp_path / name for name in names):
        if path.suffix == ".npz":
            np.savez(path, **dict(zip("abcdefwxyz", rows.T, strict=True)))
        if path.suffix == ".parquet":
            import pyarrow as pa
            import pyarrow.parquet as pq

            pq.write_table(pa.table(dict(zip("abcdefwxyz", rows.T, strict=True))), path)
        recording = description.recording(path)
        np.testing.assert_allclose(recording.wrench, -2 * w)
        np.testing.assert_allclose(recording.R_base_sensor, R.as_matrix(), atol=1e-9)
        np.testing.assert_allclose(recording.t, np.arange(5) / 100)
    np.savez(tmp_path / "log.npz", state=rows)
    columns = {"wrench": ["state[0:6]"], "quaternion": ["state[6:10]"]}
    sliced = replace(description, columns=columns).recording(tmp_path / "log.npz")
    np.testing.assert_allclose(sliced.wrench, -2 * w)
    (tmp_path / "bare.csv").write_text(text.partition("\n")[2] + "0.1,0.2")
    named = replace(description, tables=Requested(names=tuple("abcdefwxyz")))
    bare = named.recording(tmp_path / "bare.csv")
    np.testing.assert_allclose(bare.wrench, -2 * w)
    assert "are left out" in bare.notes[-1]
    with pytest.raises(
        UnreadableFile, match=r"no header but 10 columns of numbers; name each .*`names="
    ):
        description.recording(tmp_path / "bare.csv")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("name", "nom"), "'nom' is not a field; the fields are name, convention"),
        (
            ('"sensor_on_load"', '"both"'),
            "'convention' must be 'load_on_sensor' or 'sensor_on_load', got 'both'",
        ),
        (("100, 100, 200", "100, 200"), r"'range' must have shape \(6,\), got \(5,\)"),
        (('"wxyz"', '"zyxw"'), "'quaternion_order' must be 'xyzw' or 'wxyz', got 'zyxw'"),
        (
            ('"sensor_from_base"', '"world"'),
            "'quaternion_of' must be 'base_from_sensor' or 'sensor_from_base'",
        ),
        (("quaternion = [", "attitude = ["), "no signal 'attitude'; known are t, wrench"),
        (('"a", "b", ', '"a", '), "wrench has 6 columns"),
        (("[scale]", "[scale"), "is not valid TOML"),
    ],
)
def test_descriptions_that_are_none(change, message, tmp_path):
    path = tmp_path / "sensor.toml"
    path.write_text(SENSOR.replace(*change))
    with pytest.raises(UnreadableFile, match=message):
        SensorDescription.load(path)


def test_tables_that_do_not_fit(tmp_path):
    with pytest.raises(UnreadableFile, match="a sensor is described in TOML"):
        SensorDescription.load(tmp_path / "sensor.yaml")
    with pytest.raises(UnreadableFile, match="no such file"):
        SensorDescription.load(tmp_path / "sensor.toml")
    (tmp_path / "sensor.toml").write_text(SENSOR)
    description = SensorDescription.load(tmp_path / "sensor.toml")
    log = tmp_path / "log.csv"

    def refused(text, message, about=description):
        log.write_text(text)
        with pytest.raises((UnreadableFile, ValueError), match=message):
            about.recording(log)

    refused("a,b\n1,2\n", "no column c, d, e, f; it has a, b")
    row = "a,b,c,d,e,f,w,x,y,z\n" + ",".join(["1"] * 10) + "\n"
    refused(row.replace(",1\n", ",x\n"), "no line after the header has 10 fields with numbers")
    refused(
        row + "1,2,3\n" + row.partition("\n")[2], "line 3 is damaged, .* 3 fields instead of 10"
    )
    refused(row, "the quaternion in row 1 has length 2, not 1")
    unit = ",".join(["1"] * 9 + ["0"]).replace("1,1,1,0", "1,0,0,0") + "\n"
    short = ",".join(["1"] * 6 + ["0.5", "0", "0", "0"]) + "\n"
    head = row.partition("\n")[0] + "\n"
    refused(head + unit + unit + short, "the quaternion in row 3 has length 0.5, not 1")
    refused(row.replace("1,1", "nan,1"), "no row has a number in every named column")
    refused(row, "does not say which columns are the wrench", replace(description, columns={}))
    only = {"wrench": list("abcdef")}
    stated = replace(description, tables=Requested(joint_names=("a", "b")))
    refused(row, "`joint_names` are for recordings with joints: give the arm as `robot`", stated)
    refused(row, "the orientation of the sensor is missing", replace(description, columns=only))
    refused(row, "wrench needs 6 columns, got 1", replace(description, columns={"wrench": ["a"]}))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda w: w[..., None], r"'w' has the shape \(5, 6, 1\); a signal has one row for each"),
        (lambda w: w > 0, "the array 'w' holds bool, not numbers"),
    ],
)
def test_arrays_that_are_no_signal_are_refused(tmp_path, rng, change, message):
    about = SENSOR.partition("[columns]")[0] + '[columns]\nwrench = "w"\nquaternion = "q"\n'
    (tmp_path / "sensor.toml").write_text(about)
    wrench = change(rng.normal(size=(5, 6)))
    np.savez(tmp_path / "log.npz", w=wrench, q=Rotation.random(5, random_state=2).as_quat())
    with pytest.raises(UnreadableFile, match=message):
        SensorDescription.load(tmp_path / "sensor.toml").recording(tmp_path / "log.npz")


@pytest.mark.parametrize("ending", ["parquet", "arrows"])
def test_flags_in_a_table_are_no_signal(tmp_path, ending):
    import pyarrow as pa
    import pyarrow.parquet as pq

    (tmp_path / "sensor.toml").write_text(SENSOR)
    table = pa.table({name: [True, False] for name in "abcdefwxyz"})
    path = tmp_path / f"log.{ending}"
    if ending == "parquet":
        pq.write_table(table, path)
    else:
        with pa.ipc.new_stream(path, table.schema) as writer:
            writer.write_table(table)
    with pytest.raises(UnreadableFile, match="column 'a' holds true and false, not numbers"):
        SensorDescription.load(tmp_path / "sensor.toml").recording(path)


def test_rows_of_a_table_without_a_number_are_left_out(tmp_path):
    """A hole in a quaternion, or in any other named column, costs its row only."""
    (tmp_path / "sensor.toml").write_text(SENSOR)
    log = tmp_path / "log.csv"
    whole = "1,1,1,1,1,1,0.5,0.5,0.5,0.5\n"
    holes = [whole.replace("0.5", "nan", 1), whole.replace("1", "inf", 1), whole]
    log.write_text("a,b,c,d,e,f,w,x,y,z\n" + whole + "".join(holes))
    made = SensorDescription.load(tmp_path / "sensor.toml").recording(log)
    assert len(made) == 2
    assert "left out 2 rows with NaN" in made.notes


def test_numbers_without_intervals_are_shown(plain, tmp_path, capsys):
    """Everywhere the same digits; no interval, and no number that is called unknown."""
    plain.save(tmp_path / "plain.json")
    again = WristPayload.load(tmp_path / "plain.json")
    assert not again.gives_intervals
    assert str(again) == str(plain)
    assert str(plain).startswith("4 kg, centre of mass 10, 20, 100 mm in frame 'sensor' (no")
    assert plain.headline == "DO NOT USE: 4 kg. No intervals are given."
    assert {x.rounded[1] for x in plain.quantities} == {""}
    Output(as_json=False).payload("What it carries", plain)
    printed = capsys.readouterr().out
    assert "What it carries (no intervals)" in printed
    assert "0.06" in printed  # Iyy about the centre of mass
    page = wrench_page(plain)
    assert page.answer[0] == "The payload weighs 4 kg (without an interval)."
    rows = page.sections[0].parts[0].rows
    assert [row[1] for row in rows[:4]] == pytest.approx([4.0, 10.0, 20.0, 100.0])
    assert {row[2] for row in rows} == {None}
    for words in (str(plain), printed, plain._repr_html_(), page.html()):
        assert not re.search(r"\b(unknown|nan)\b", words, re.IGNORECASE)


def test_a_load_without_intervals_leaves_the_noise_of_the_force(payload, plain):
    """Its inertia is known, and the covariance is that of wrench and motion alone."""
    assert plain.knows_inertia
    samples = moving(payload, noise=0.1)
    bare = replace(payload, full_covariance=np.zeros((18, 18)))
    by_noise, found = (contact_force(each, samples) for each in (bare, plain))
    np.testing.assert_allclose(found.covariance, by_noise.covariance)
    np.testing.assert_array_equal(found.external, by_noise.external)
    assert not found.verdict.has(DoubtKind.NOT_EXCITED)
    assert "contain the noise of wrench and motion only" in found.verdict.sentence
    assert found.verdict.ok


def test_a_method_of_another_package_refuses_options_that_it_does_not_have(rng, monkeypatch):
    """Nothing that a user asks for is ignored without a word."""
    monkeypatch.setattr(_wrist, "wrist_method_named", lambda name: None)
    monkeypatch.setattr(_wrist.WristWeighing, "_at_rest", object())
    monkeypatch.setattr(_wrist.WristWeighing, "_in_motion", object())
    given = {"level": True, "cutoff_hz": 7.0, "drift_again": True}
    for name, value in given.items():
        weighing = _wrist.WristWeighing("rest.csv", "move.csv", method="other", **{name: value})
        with pytest.raises(InvalidSamples, match=rf"'other' takes no `{name}`: leave out"):
            weighing._by_other_package()
    free = SensorDescription(WristSensor(yaw_known=False))
    weighing = _wrist.WristWeighing("rest.csv", "move.csv", method="other", sensor=free)
    with pytest.raises(InvalidSamples, match="needs a sensor whose yaw is known"):
        weighing._by_other_package()
