"""Examples of saved values, made up from the annotations of their classes."""

import importlib
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

import steelyard
from steelyard import _kinds as kinds
from steelyard._codec import Value, _Nested, _SpreadKind, fields_of
from steelyard.fleet._rows import LogRow
from steelyard.inertia import InertialParameters
from steelyard.payload import Part
from steelyard.robot import ParameterTable, RobotModel, load_robot
from steelyard.simulation import PlannedFault

SIZES = {"n": 2, "p": 4, "L": 3, "causes": 2, "parts": 2, "shapes": 1, "designs": 2, "times": 3}
ROTATION = np.array([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
GIVEN = {  # fields of which a class demands more than their annotations say
    "Payload": {"shares": {"noise": 0.5, "friction": 0.25, "gains": 0.25, "drift": 0.0}},
    "WristPayload": {"shares": {"noise": 0.5, "friction": 0.25, "gains": 0.25, "drift": 0.0}},
    "WristSensor": {"motion_noise": {"joints": 0.1}},
    "JointLimits": {"q_min": [-1.0, -2.0], "q_max": [1.0, 2.0]},
    "Entry": {"start_s": 1.5, "end_s": 2.5},
    "LogRow": {"start_s": 1.5, "end_s": 2.5},
    "Pick": {"close_s": 1.5, "open_s": 2.5, "part": "a", "fits": "b"},
    "Shift": {"parts": (Part("a", 1.0, 0.2, (0.1, 0.2, 0.3), 0.05, 0.2), Part("b", 2.0))},
    "ShiftPlan": {
        "carry": [[0.1, 0.2], [0.3, 0.5]],
        "back": [[0.3, 0.5], [0.1, 0.2]],
        "cycles": 60,
        "faults": (PlannedFault(pick=7, kind="slipped", share=0.2, part="a", at=0.3),),
    },
    "DriveModel": {"coupling": [[1.0, 0.0], [0.5, 1.0]]},
}


def value_classes():
    """Every class that the codec checks, writes and reads."""
    root = Path(steelyard.__file__).parent
    for path in sorted(root.rglob("*.py")):
        if "steelyard._codec import" in path.read_text(encoding="utf-8"):
            parts = path.relative_to(root.parent).with_suffix("").parts
            importlib.import_module(".".join(parts).removesuffix(".__init__"))
    found = set()
    waiting = [Value]
    while waiting:
        waiting += (below := waiting.pop().__subclasses__())
        found.update(below)
    classes = (
        cls for cls in found if cls.__module__.startswith("steelyard.") and fields_of_or(cls)
    )
    return sorted(classes, key=lambda cls: (cls.__module__, cls.__name__))


def fields_of_or(cls):
    """The kinds of the fields of a class; none where it is not a dataclass."""
    if hasattr(cls, "__dataclass_fields__"):
        return fields_of(cls)
    return {}


def example(cls, seed):
    """A value of a class whose fields all depend on the seed, where they can."""
    rng = np.random.default_rng(seed)
    made = {name: _made(kind, rng) for name, kind in fields_of(cls).items()}
    made.update(GIVEN.get(cls.__name__, {}))
    if cls is LogRow:
        made["digest"] = _digest(made)
    return cls(**made)


def _digest(fields):
    """The digest of the numbers of a stored row; one that is not stored yet needs none."""
    return LogRow(**{**fields, "digest": "", "written": None}).digest_of_numbers


def _made(kind, rng):
    if isinstance(kind, kinds.Simple):
        return f"word {rng.integers(1000)}" if kind is kinds.TEXT else True
    if isinstance(kind, kinds.Line):
        return f"word {rng.integers(1000)}"
    if isinstance(kind, kinds.Choice):
        return kind.values[-1]
    if isinstance(kind, kinds.EnumKind):
        return rng.choice(list(kind.members))
    if isinstance(kind, kinds.Time):
        return datetime(2026, 1, int(rng.integers(1, 29)), 12, tzinfo=UTC)
    if isinstance(kind, kinds.Number):
        return _number(kind, rng)
    if isinstance(kind, kinds.Numbers):
        return _array(kind, rng)
    if isinstance(kind, kinds.Optional):
        return _made(kind.inner, rng)
    if isinstance(kind, kinds.Either):
        return _made(kind.kinds[0], rng)
    if isinstance(kind, kinds.Many):
        count = 2 if kind.shape is None else _size(kind.shape.sizes[0])
        if isinstance(kind.inner, kinds.EnumKind):
            return tuple(rng.permutation(list(kind.inner.members))[:count])
        return tuple(_made(kind.inner, rng) for _ in range(count))
    if isinstance(kind, kinds.TupleKind):
        return kind.make([_made(inner, rng) for inner in kind.kinds])
    if isinstance(kind, kinds.Named):
        return {f"name {rng.integers(1000)}": _made(kind.inner, rng)}
    if isinstance(kind, _SpreadKind):
        return _made(kind.inner, rng)
    if isinstance(kind, _Nested):
        return _nested(kind.cls, rng)
    return {"anything": [1.0, "a"]}


def _number(kind, rng):
    low = max(kind.range.low, -1e6)
    high = min(kind.range.high, low + 100.0)
    if kind.whole:
        return int(low) + int(rng.integers(1, 50))
    return float(low + (high - low) * rng.uniform(0.1, 0.9))


def _array(kind, rng):
    shape = tuple(_size(size) for size in kind.shape.sizes)
    array = rng.uniform(0.1, 1.0, shape)
    if kind.dtype.kind == "i":
        return rng.integers(1, 50, shape)
    if kinds.RIGID in kind.properties:
        array = np.tile(np.eye(4), (*shape[:-2], 1, 1))
        array[..., :3, :3] = ROTATION
        array[..., :3, 3] = rng.uniform(size=(*shape[:-2], 3))
    if kinds.SYMMETRIC in kind.properties or kinds.COVARIANCE in kind.properties:
        array = array @ array.T
    return array


def _size(size):
    if isinstance(size, int):
        return size
    factor, letter, more = kinds._parsed(size)
    return factor * SIZES.get(letter, 2) + more


def _nested(cls, rng):
    if cls is RobotModel:
        return load_robot("planar2r")
    if cls is ParameterTable:
        return load_robot("planar2r").parameter_table[: SIZES["p"]]
    if cls is InertialParameters:
        return InertialParameters.from_vector(rng.uniform(1.0, 2.0, 10), "flange")
    return example(cls, int(rng.integers(1000)))
