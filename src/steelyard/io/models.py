"""Models and payloads as JSON files: everything there is to know, readable by people and programs.

A file is an object with 'steelyard' (what it holds), 'version' of the format, and the content. Numbers that
are not finite (an unexcited parameter has an infinite variance) are written as null. Files are written whole
or not at all.
"""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steelyard.errors import UnreadableFile
from steelyard.identification import DynamicModel, Estimate, RegressionFactor
from steelyard.identification.validation import FrictionChoice
from steelyard.inertia import PARAMETER_NAMES, InertialParameters
from steelyard.payload import Payload
from steelyard.robot.friction import FrictionLaw
from steelyard.robot.saving import robot_from_dict, robot_to_dict

_VERSION = 1
_SHAPES = ("exponent", "width", "stribeck_speed")


def save_model(model: DynamicModel, path: str | Path) -> None:
    """Writes an identified arm.

    Args:
        model: the arm
        path: of the JSON file
    """
    law = {name: getattr(model.law, name) for name in FrictionLaw.__dataclass_fields__}
    estimate = {name: getattr(model.estimate, name) for name in Estimate.__dataclass_fields__}
    choice = model.choice
    content = {
        "robot": robot_to_dict(model.robot),
        "law": law,
        "estimate": estimate,
        "shape_std": model.shape_std,
        "kinematics": model.kinematics,
        "made_from": list(model.made_from),
        "choice": None if choice is None else [choice.law, choice.scores, choice.folds],
        "gain": model.gain,
        "factor": {"R": model.factor.R, "rows": model.factor.rows},
    }
    _write(content, "model", path)


def load_model(path: str | Path) -> DynamicModel:
    """Reads an identified arm.

    Args:
        path: of the JSON file
    """
    content = _read(path, "model")
    try:
        return _model(content)
    except (KeyError, TypeError, ValueError) as error:
        raise UnreadableFile(f"{path} is not a whole model file: {type(error).__name__} {error}") from error


def save_payload(payload: Payload, path: str | Path) -> None:
    """Writes a payload.

    Args:
        payload: what was weighed
        path: of the JSON file
    """
    content = {
        "frame": payload.body.frame,
        "mass": payload.body.mass,
        "com": payload.body.com if payload.body.mass else None,
        "order": list(PARAMETER_NAMES),
        "body": payload.body.vector,
        "unconstrained": payload.unconstrained.vector,
        "covariance": payload.covariance,
        "noise": payload.noise,
        "status": payload.status,
        "method": payload.method,
        "gain_error": payload.gain_error,
    }
    _write(content, "payload", path)


def load_payload(path: str | Path) -> Payload:
    """Reads a payload.

    Args:
        path: of the JSON file
    """
    content = _read(path, "payload")
    try:
        frame = content["frame"]
        return Payload(
            InertialParameters.from_vector(content["body"], frame),
            InertialParameters.from_vector(content["unconstrained"], frame),
            _numbers(content["covariance"]),
            _numbers(content["noise"]),
            content["status"],
            content.get("method", "direct"),
            None if content.get("gain_error") is None else _numbers(content["gain_error"]),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise UnreadableFile(f"{path} is not a whole payload file: {type(error).__name__} {error}") from error


def _model(content: dict[str, Any]) -> DynamicModel:
    law: dict[str, Any] = {k: _numbers(v) if k in _SHAPES else v for k, v in content["law"].items()}
    estimate = dict(content["estimate"])
    for name in ("value", "covariance", "noise", "inflation"):
        estimate[name] = _numbers(estimate[name])
    estimate["condition"] = float("inf") if estimate["condition"] is None else estimate["condition"]
    factor = content["factor"]
    return DynamicModel(
        robot_from_dict(content["robot"]),
        FrictionLaw(**law),
        Estimate(**{**estimate, "names": tuple(estimate["names"])}),
        _numbers(content["shape_std"]).reshape(-1, len(law["exponent"])),
        content["kinematics"],
        tuple(content["made_from"]),
        RegressionFactor(_numbers(factor["R"]), np.array(factor["rows"], dtype=np.int64)),
        None if content["choice"] is None else FrictionChoice(*content["choice"]),
        None if content.get("gain") is None else _numbers(content["gain"]),
    )


def _write(content: dict[str, Any], kind: str, path: str | Path) -> None:
    target = Path(path)
    if not target.parent.is_dir():
        raise UnreadableFile(f"cannot write {target}: there is no folder {target.parent}")
    text = json.dumps({"steelyard": kind, "version": _VERSION, **_plain(content)}, allow_nan=False)
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text + "\n")
        os.replace(name, target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _read(path: str | Path, kind: str) -> dict[str, Any]:
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise UnreadableFile(f"cannot read {path}: {error.strerror}") from error
    except ValueError as error:
        raise UnreadableFile(f"{path} is not JSON: {error}") from error
    found = content.get("steelyard") if isinstance(content, dict) else None
    if found != kind:
        raise UnreadableFile(f"{path} is not a {kind} file of steelyard (it says '{found}')")
    if content.get("version") != _VERSION:
        raise UnreadableFile(f"{path} has version {content.get('version')}; this steelyard reads {_VERSION}")
    return dict(content)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, float) and not np.isfinite(value):
        return None
    return value


def _numbers(values: Any) -> NDArray[np.float64]:
    """An array in which null is infinite."""
    array = np.array(values, dtype=float)
    return np.where(np.isnan(array), np.inf, array)
