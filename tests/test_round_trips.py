"""What is written comes back: every reader and writer, over values that Hypothesis makes up."""

import contextlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Literal, NamedTuple

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from steelyard import _kinds as kinds
from steelyard import _saved
from steelyard._arrays import Array
from steelyard._codec import Value, _names_in_file, fields_of
from steelyard._kinds import AS_TABLE, COVARIANCE, INFINITE, NOT_NEGATIVE, RIGID, Range, Shape
from steelyard.errors import InvalidValue, SteelyardError, UnreadableFile
from steelyard.inertia import InertialParameters
from steelyard.io import read, write
from steelyard.payload import Payload
from steelyard.recording import Preparation, Recording
from steelyard.trajectory import FourierTrajectory
from steelyard.verdict import Doubt, DoubtKind, Verdict
from value_examples import GIVEN, example, value_classes

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
        content = _saved._finite_or_not(content)  # texts that mean numbers are numbers
    _saved.save({"content": content}, "thing", tmp_path / "a.json")
    assert repr(_saved.load(tmp_path / "a.json", "thing")["content"]) == repr(content)


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


class Pair(NamedTuple):
    flag: bool
    text: str


PAIR = Pair(True, "")


@dataclass(frozen=True, eq=False)
class Everything(Value, partial=True):
    """A field of every kind."""

    text: str = ""
    array: Annotated[Array | None, Shape("n", 2), INFINITE] = None
    rows: tuple[Annotated[Array, Shape("n")], ...] = ()
    matrix: Annotated[Array | None, Shape("p+1", "p+1"), COVARIANCE] = None
    one: Literal["a", 1] = "a"
    count: Annotated[int, Range(1)] = 1
    pose: Annotated[Array, Shape(4, 4), RIGID] = field(default_factory=lambda: np.eye(4))
    each_or_all: float | Annotated[Array, Shape("n")] = 0.0
    some: Mapping[str, Annotated[float, NOT_NEGATIVE]] = field(default_factory=dict)
    pair: Pair = PAIR
    table: Annotated[Pair, AS_TABLE] = PAIR
    kind: DoubtKind = DoubtKind.GAINS


@quick
@given(content=st.dictionaries(st.sampled_from(sorted(fields_of(Everything))), ANY) | ANY)
def test_any_content_of_a_field_is_accepted_or_refused(content):
    with contextlib.suppress(InvalidValue):  # and nothing else
        Everything.from_dict(content)


@pytest.mark.parametrize("value", ["b", "", 2, 1.0, True, None, ["a"]])
def test_only_the_named_values_of_a_choice_are_taken(value):
    """Neither others of the same type, nor what equals one of them and has another type."""
    with pytest.raises(InvalidValue, match="'one' must be 'a' or 1"):
        Everything.from_dict({"one": value})
    assert [Everything.from_dict({"one": x}).one for x in ("a", 1)] == ["a", 1]


def content_of(value):
    """What a file holds of a value."""
    return json.loads(
        json.dumps(_saved.plain(value.to_arrays())), object_pairs_hook=_saved._restored
    )


CLASSES = value_classes()


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_every_field_of_every_value_comes_back(cls):
    contents = []
    for seed in (1, 2):
        value = example(cls, seed)
        content = content_of(value)
        again = cls.from_dict(content)
        assert _saved.plain(again.to_dict()) == _saved.plain(content)
        contents.append(content)
    one, other = contents
    varied = {name for name, kind in fields_of(cls).items() if _varies(kind)} & set(one)
    assert varied - set(GIVEN.get(cls.__name__, ())) <= {x for x in one if one[x] != other[x]}


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_every_value_can_be_written_by_json_as_it_is(cls):
    value = example(cls, 1)
    table = value.to_dict()
    again = cls.from_dict(json.loads(json.dumps(table)))
    assert json.dumps(again.to_dict()) == json.dumps(table)
    assert json.dumps(_saved.plain(again.to_arrays())) == json.dumps(
        _saved.plain(value.to_arrays())
    )


def test_infinite_numbers_are_numbers_in_a_dictionary_and_texts_in_a_file():
    body = InertialParameters.from_com(2.0, [0.0, 0.0, 0.1], np.eye(3))
    found = Payload(body, body, np.diag(np.full(10, np.inf)), np.ones(3), Verdict())
    assert found.to_dict()["covariance"][0][0] == np.inf
    assert isinstance(found.to_arrays()["covariance"], np.ndarray)
    again = Payload.from_dict(json.loads(json.dumps(found.to_dict())))
    np.testing.assert_array_equal(again.covariance, found.covariance)


def _varies(kind):
    return isinstance(kind, kinds.Numbers | kinds.Number) or kind is kinds.TEXT


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_missing_and_unknown_fields_of_every_value_are_named(cls):
    content = content_of(example(cls, 1))
    with pytest.raises(ValueError, match="'misspelt' is not a field"):
        cls.from_dict({**content, "misspelt": 1})
    for name in _names_in_file(cls)[1]:
        without = {other: x for other, x in content.items() if other != name}
        with pytest.raises(ValueError, match=f"'{name}' is missing"):
            cls.from_dict(without)


def nonsense(kind, held):
    """Arrays that a field must refuse."""
    array = np.array(held, dtype=float)
    yield array[None]  # one axis more
    if kind.finite:
        yield np.where(np.arange(array.size).reshape(array.shape) == 0, np.nan, array)
    if kind.range.low > -np.inf:
        yield np.where(np.arange(array.size).reshape(array.shape) == 0, -1.0, array)
    if {kinds.COVARIANCE, kinds.SYMMETRIC} & set(kind.properties):
        yield array + np.triu(np.ones_like(array), 1) * np.abs(array).max()
    if kinds.RIGID in kind.properties:
        yield 2.0 * array


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_files_and_python_callers_get_the_same_refusal_of_an_array(cls):
    value = example(cls, 1)
    content = content_of(value)
    for name, kind in fields_of(cls).items():
        inner = kind.inner if isinstance(kind, kinds.Optional) else kind
        if not isinstance(inner, kinds.Numbers):
            continue
        for bad in nonsense(inner, getattr(value, name)):
            with pytest.raises(SteelyardError, match=rf"'{name}' must .*got") as of_file:
                cls.from_dict({**content, name: bad.tolist()})
            with pytest.raises(SteelyardError, match=rf"'{name}' must .*got") as of_call:
                replace(value, **{name: bad})
            assert str(of_file.value) == str(of_call.value)
            assert type(of_file.value) is type(of_call.value)


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_values_do_not_share_arrays_with_their_callers(cls):
    value = example(cls, 1)
    for name in fields_of(cls):
        held = getattr(value, name)
        if isinstance(held, np.ndarray):
            mine = np.array(held)
            other = replace(value, **{name: mine})
            mine[...] = 0.0
            assert not getattr(other, name).flags.writeable
            np.testing.assert_array_equal(getattr(other, name), held)


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
        _saved.load(path, "payload")


def test_a_recording_in_the_place_of_a_model_is_refused(tmp_path):
    path = tmp_path / "loaded.npz"
    np.savez(path, q=np.full((3, 2), 0.7))
    with pytest.raises(UnreadableFile, match="models and payloads are named before recordings"):
        _saved.load(path, "model")


def test_bytes_of_a_file_in_the_words_of_a_library_stay_readable():
    damaged = "expected 1 column, got: \x1b[31m`p\ufffd" + "x" * 500
    with (
        pytest.raises(UnreadableFile) as refused,
        _saved.parsing("a.csv is damaged", "write it again"),
    ):
        raise ValueError(damaged)
    words = str(refused.value)
    assert words.startswith("a.csv is damaged (expected 1 column, got: ?[31m'p?xxx")
    assert words.endswith("x ...); write it again")
    assert len(words) < 220


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


def test_a_file_is_on_the_disk_before_it_takes_its_name(tmp_path, monkeypatch):
    calls = []

    def recorded(name, call):
        def record(*given):
            calls.append(name)
            return call(*given)

        return record

    monkeypatch.setattr(_saved.os, "fsync", recorded("fsync", _saved.os.fsync))
    monkeypatch.setattr(_saved.Path, "replace", recorded("replace", _saved.Path.replace))
    _saved.write_text(tmp_path / "a.json", "{}")
    assert calls == ["fsync", "replace"]
    with _saved.together():
        for name in ("b.json", "c.json"):
            _saved.write_text(tmp_path / name, "{}")
    assert calls[2:] == ["fsync", "fsync", "replace", "replace"]
