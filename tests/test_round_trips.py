"""What is written comes back: every reader and writer, over values that Hypothesis makes up."""

import contextlib
import json
import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from steelyard import fields, saved
from steelyard.errors import SteelyardError, UnreadableFile
from steelyard.inertia import InertialParameters
from steelyard.io import read, write
from steelyard.payload import Payload
from steelyard.recording import Preparation, Recording
from steelyard.trajectory import FourierTrajectory
from steelyard.verdict import Doubt, DoubtKind, Verdict

quick = settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
numbers = st.floats(-1e6, 1e6, allow_nan=False).map(lambda x: round(x, 6))
words = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)


def arrays(*shape):
    return hnp.arrays(float, shape, elements=numbers)


FINE = Verdict("fine").to_dict()


def unlike(one, other):
    """Fields of two values in which they differ."""
    pairs = ((name, getattr(one, name), getattr(other, name)) for name in one.__dataclass_fields__)
    return [name for name, x, y in pairs if not _alike(x, y)]


def _alike(x, y):
    if isinstance(x, np.ndarray):
        return np.array_equal(x, y, equal_nan=True)
    return x == y or (isinstance(x, InertialParameters) and x.vector.tolist() == y.vector.tolist())


@quick
@given(
    content=st.recursive(
        st.none() | st.booleans() | st.floats() | words, lambda x: st.lists(x, max_size=4)
    )
)
def test_saved_content_comes_back_with_every_number(tmp_path, content):
    if "nan" in repr(content) or "inf" in repr(content):
        content = saved._finite_or_not(content)  # texts that mean numbers are numbers
    saved.save({"content": content}, "thing", tmp_path / "a.json")
    assert repr(saved.load(tmp_path / "a.json", "thing")["content"]) == repr(content)


@quick
@given(data=st.data(), suffix=st.sampled_from([".npz", ".parquet"]))
def test_recordings(tmp_path, data, suffix):
    n, N = data.draw(st.integers(1, 4)), data.draw(st.integers(2, 8))
    channels = data.draw(
        st.sets(st.sampled_from(["v", "tau", "current", "q_commanded", "temperature"]))
    )
    names = data.draw(st.lists(words.filter(str.strip), min_size=n, max_size=n, unique=True))
    recording = Recording(
        t=np.arange(N) * 0.01 + data.draw(numbers),
        q=data.draw(arrays(N, n)),
        joint_names=names,
        source=data.draw(words),
        notes=data.draw(st.lists(words, max_size=2)),
        **{name: data.draw(arrays(N, n)) for name in channels},
    )
    write(recording, tmp_path / f"a{suffix}")
    back = read(tmp_path / f"a{suffix}")
    assert unlike(replace(recording, t=back.t, epoch_s=back.epoch_s), back) == []
    np.testing.assert_allclose(back.t, recording.t, atol=1e-9)


@quick
@given(sine=arrays(2, 3), cosine=arrays(2, 3), offset=arrays(2), period_s=st.floats(0.01, 1e3))
def test_trajectories(tmp_path, sine, cosine, offset, period_s):
    motion = FourierTrajectory(sine, cosine, offset, period_s)
    motion.save(tmp_path / "a.json")
    assert unlike(FourierTrajectory.load(tmp_path / "a.json"), motion) == []


doubts = st.builds(Doubt, st.sampled_from(DoubtKind), words, st.booleans())
verdicts = st.builds(Verdict, words, st.lists(doubts, max_size=3).map(tuple))


@quick
@given(
    vector=arrays(10),
    half=hnp.arrays(float, (10, 10), elements=st.floats(-10, 10)),
    unknown=st.booleans(),
    noise=hnp.arrays(float, 3, elements=st.floats(0, 10)),
    verdict=verdicts,
)
def test_payloads(tmp_path, vector, half, unknown, noise, verdict):
    body, covariance = InertialParameters.from_vector(vector, "flange"), half @ half.T
    if unknown:
        covariance[9] = covariance[:, 9] = 0.0
        covariance[9, 9] = np.inf
    payload = Payload(body, body, covariance, noise, verdict)
    payload.save(tmp_path / "a.json")
    assert unlike(Payload.load(tmp_path / "a.json"), payload) == []


SHARES = {"noise": 0.25, "friction": 0.0, "gains": 0.7, "drift": 0.0, "gravity": 0.05}


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"noise": [1.0] * 4}, "'channels' says 3, the rest of the file gives 4"),
        ({"noise": [1.0, True, 1.0]}, "'noise' must be an array of numbers"),
        ({"channels": 2.0}, "'channels' says 2.0, the rest of the file gives 3"),
        ({"shares": {**SHARES, "noise": 0.5}}, "'shares' must add up to 1"),
        (
            {"shares": {**SHARES, "noise": 1.5}},
            "'shares.noise' must be a finite number from 0 to 1",
        ),
        ({"shares": {**SHARES, "luck": 0.0}}, "'shares.luck' is no cause; the causes are noise, "),
        ({"shares": {"noise": 0.25, "gains": 0.75}}, "'shares.friction' is missing"),
        ({"shares": []}, "'shares' must be a table, got []"),
    ],
)
def test_payloads_with_nonsense_are_refused(change, why):
    body = InertialParameters.from_vector(np.arange(1.0, 11.0), "flange")
    content = Payload(body, body, np.eye(10), np.ones(3), Verdict(), shares=SHARES).to_dict()
    assert Payload.from_dict(content).shares == SHARES
    with pytest.raises(ValueError, match=re.escape(why)):
        Payload.from_dict({**content, **change})


@quick
@given(
    cutoff=st.floats(0.1, 100) | st.just("auto") | st.none(),
    lag=st.none() | st.lists(numbers, max_size=3),
)
def test_preparations(cutoff, lag):
    how = Preparation(cutoff_hz=cutoff, lag_s=None if lag is None else tuple(lag))
    assert Preparation.from_dict(json.loads(json.dumps(how.to_dict()))) == how


ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | words,
    lambda x: st.lists(x, max_size=3) | st.dictionaries(words, x, max_size=3),
    max_leaves=8,
)
RULES = {
    "text": fields.TEXT,
    "array": fields.optional(fields.numbers("n", 2, finite=False)),
    "rows": fields.each(fields.numbers("n"), 2),
    "matrix": fields.numbers("p+1", "p+1", covariance=True),
    "one": fields.one_of("a", 1),
    "count": fields.count(1),
    "pose": fields.numbers(4, 4, rigid=True),
    "all": fields.each_or_all("n"),
    "some": fields.named(fields.number(0.0)),
    "pair": fields.row(fields.FLAG, fields.TEXT),
    "size": fields.size_of("n"),
}


@quick
@given(content=st.dictionaries(st.sampled_from(sorted(RULES)), ANY) | ANY)
def test_whatever_stands_in_a_field_is_taken_or_refused(content):
    with contextlib.suppress(ValueError):  # and nothing else
        fields.check(content, RULES)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('{"steelyard": "payload", "version": 1, "version": 1}', "stands in it twice"),
        ('{"steelyard": "payload", "version": true}', "has version True"),
        ('{"a": NaN}', "NaN is not a number of JSON"),
        ("[" * 100_000, "nested too deeply"),
        ('{"a": ' + "1" * 5000 + "}", "is not JSON"),
    ],
)
def test_json_that_others_would_read_otherwise_is_refused(tmp_path, text, why):
    path = tmp_path / "a.json"
    path.write_text(text)
    with pytest.raises(UnreadableFile, match=why):
        saved.load(path, "payload")


def test_a_field_that_contradicts_another_is_refused(tmp_path):
    path, body = (
        tmp_path / "a.json",
        InertialParameters.from_com(2.5, [0, 0, 0.1], np.eye(3) / 100, "flange"),
    )
    Payload(body, body, np.eye(10) / 100, np.ones(3), Verdict("fine")).save(path)
    sound = json.loads(path.read_text())
    for name, value, why in (
        ("mass", 9.9, "'mass' says 9.9, the rest of the file gives 2.5"),
        ("std", [0.2] * 10, "'std"),
        ("order", sound["order"][::-1], "'order"),
        ("covariance", (-np.eye(10)).tolist(), "'covariance' must be a covariance"),
        ("verdict", {**FINE, "ok": False}, "'verdict.ok' says False"),
        ("verdict", {**FINE, "sentence": "Fine; but not so."}, "'verdict.sentence' says Fine; but"),
        ("more", 1, "'more' is not a field"),
        ("vector", [1e200] * 10, "'vector' must be finite"),
    ):
        path.write_text(json.dumps({**sound, name: value}))
        with pytest.raises(SteelyardError, match=why):
            Payload.load(path)
