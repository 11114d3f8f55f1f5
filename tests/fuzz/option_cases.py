"""Commands with an odd value for one of their options, which the command line itself lists."""

from __future__ import annotations

import random
from functools import cache
from typing import Any

import typer.main
from breaking import Case
from fleet_cases import BROKEN_STORE
from sound_files import CATALOGUE, STORE

from steelyard import cli

SOUND_COMMANDS = (
    "check loaded.npz",
    "robot planar2r",
    "simulate planar2r --trajectory motion.json --rate 50 -o out.npz",
    "identify planar2r empty.npz --friction linear -o out.json",
    "weigh model.json loaded.npz",
    "track loaded.npz --model model.json",
    "weigh-wrist at-rest wrist.csv --sensor sensor.toml",
    "weigh-wrist in-motion wrist_motion.csv --sensor motion.toml",
    "track-wrist wrist_motion.csv --sensor motion.toml",
    "contact wrist.json wrist_motion.csv --sensor motion.toml -o out.parquet",
    "collisions model.json loaded.npz",
    "postures-random planar2r --count 3",
    "export ur payload.json --force",
    "export urdf payload.json --force",
    "export-arm urdf model.json -o out.urdf --force",
    "export-motion design.json --to csv -o out.csv --from home",
    "guide ur10 --payload payload.json --speed 0.5",
    "design planar2r --harmonics 2 --starts 1 --time-limit 1 -o out.json",
    "shortest-motion planar2r --noise 1,1 --starts 1 --harmonics 2 --time-limit 1 -o out.json",
    f"fleet build {CATALOGUE} -o {BROKEN_STORE} --workers 1",
    f"fleet identify {STORE} --workers 1",
    f"fleet weigh {STORE} --workers 1",
    f"fleet trend {STORE} --workers 1",
    "record replay:loaded.npz -o out.arrows --seconds 0.2",
    "picks loaded.npz --model model.json --parts parts.csv",
    "picks-preview loaded.npz --model model.json --parts parts.csv",
    "fleet picks shift.json shift.json",
    "patch payload arm.urdf payload.json --force",
    "patch arm arm.urdf model.json --force",
    "patch loaded-arm arm.urdf model.json payload.json --force",
    "start loaded.npz planar2r --yes -o out",
    "serve ur10 --seconds 0.2 --rtde 127.0.0.1:0",
    "serve-recording ur10 currents.npz --seconds 0.2 --rtde 127.0.0.1:0",
)
"""One for each command that reads or writes something."""
SLOW = ("guide", "design", "shortest-motion", "serve", "start")  # drawn less often
KEPT = {"serve": "seconds", "serve-recording": "seconds", "start": "empty"}
"""Options without which a command would not end, or with which it would start others."""
SIGNED = ("threshold",)  # numbers that may be negative
VALUES = (
    *("nan", "inf", "-inf", "-1", "0", "1e308", "1e-308", "x", "", "1" * 500, "1e9"),
    *("spare.json", "/dev/null", ".", "nan,nan", "0,0,0", "1e308,0,0", "mass=nan", "a=b=c", "é"),
)
REFUSED_NUMBERS = ("nan", "-inf", "x")  # by every option that takes a number
NEGATIVE = "-1"  # refused by those that are not signed
LEFT_OUT = ("page", "help", "json", "publish")  # pages and publishers have cases of their own
ADDRESSES = (
    *("ur://192.168..3", "ur://", "ur://:", "ur://[::1", "ur://a b", "ur://127.0.0.1:99999"),
    *("ur://127.0.0.1:-1", "ur://127.0.0.1:x", "ros2://", "ros2://127.0.0.1:1?tau=", "ros2://a..b"),
    *("ros2://127.0.0.1:1?x=1", "franka://", "franka://192.168..3", "franka://x y", "replay:"),
    *("replay:no.npz", "replay:.", "http://127.0.0.1", "ur:127.0.0.1", "ur://é", "://", ""),
    *("ur://127.0.0.1:1", "ur://" + "a" * 300, "ur://%00", "ros2://\x00", "ur://127.0.0.1/../x"),
)
ON_AN_ADDRESS = (
    "record {} -o out.parquet --seconds 1",
    "track {} --model model.json --seconds 1",
    "track-wrist {} --robot ur10 --seconds 1",
    "stop {}",
    "set-payload {} payload.json --yes",
    "move {} design.json --yes --robot planar2r",
    "weigh-live {} --model model.json --yes",
)
SERVERS = ("serve ur10", "serve-recording ur10 currents.npz")
REFUSED_OF_SERVERS = (
    *(("--seconds", value) for value in ("-1", "nan", "-inf", "x", "")),
    *(("--rtde", value) for value in ("", ":", "x", "127.0.0.1", "127.0.0.1:x", "127.0.0.1:99999")),
    *(("--rtde", value) for value in ("127.0.0.1:-1", "192.168..3:0", "127.0.0.1:1e3", "é:0")),
    *(("--fault", value) for value in ("", "x", "1", "=skip:5", "x=skip:5", "1=no", "-1=skip:5")),
    *(("--fault", value) for value in ("nan=skip:5", "1=skip:x", "1=skip:nan", "inf=skip:5")),
    *(("--flange", value) for value in ("", "no")),
    *(("--lock", value) for value in ("", "x=1", "shoulder_pan_joint=nan")),
)
"""Arguments with which no server must start: it would not end."""
PAGES = ("99999", "-1", "x", "70000,a.urdf", "127.0.0.1:x", "0,no.urdf", ":", "a..b:1", "1e3", "")


def option_case(rng: random.Random, sound: dict[str, bytes]) -> Case:
    """A sound command with one option of an odd value."""
    base = rng.choice(SOUND_COMMANDS)
    if base.split()[0] in SLOW and rng.random() < 0.7:
        base = rng.choice(SOUND_COMMANDS[:10])
    words = base.split()
    left_out = (*LEFT_OUT, KEPT.get(words[0]))
    options = [option for option in _options(*words[:2]) if option.name not in left_out]
    chosen = rng.choice(options)
    value = rng.choice(VALUES)
    number = chosen.type_descriptor.annotation in (int, float)
    name = max(chosen.opts, key=len)
    for spelling in chosen.opts:
        if spelling in words:
            at = words.index(spelling)
            del words[at : at + 2]
    words += [name, value]
    if rng.random() < 0.3 and _has_json(*words[:2]):
        words.append("--json")
    nonsense = number and value in REFUSED_NUMBERS
    nonsense |= number and value == NEGATIVE and chosen.name not in SIGNED
    return Case(f"option: {' '.join(words)[:150]}", {}, words, nonsense)


@cache
def _parameters(*words: str) -> list[Any]:
    """The options of a command."""
    command: Any = typer.main.get_command(cli._app(""))
    for word in words:
        command = getattr(command, "commands", {}).get(word, command)
    return [item for item in command.params if hasattr(item, "is_flag")]


def _options(*words: str) -> list[Any]:
    """The options of a command that take a value."""
    return [option for option in _parameters(*words) if not option.is_flag]


def _has_json(*words: str) -> bool:
    return any("--json" in option.opts for option in _parameters(*words))


def address_case(rng: random.Random, sound: dict[str, bytes]) -> Case:
    """A command with an address, a port or a page that cannot be."""
    if rng.random() < 0.3:
        page = rng.choice(PAGES)
        words = ["track", "loaded.npz", "--model", "model.json", "--seconds", "0.2", "--page", page]
        return Case(f"page {page!r}", {}, words, nonsense=True)
    address = rng.choice(ADDRESSES)
    words = rng.choice(ON_AN_ADDRESS).split()
    words[words.index("{}")] = address
    return Case(f"address: {' '.join(words)[:150]!r}", {}, words, nonsense=True)


def serving_case(rng: random.Random, sound: dict[str, bytes]) -> Case:
    """A server that must not start."""
    words = rng.choice(SERVERS).split()
    name, value = rng.choice(REFUSED_OF_SERVERS)
    words += [name, value]
    return Case(f"server: {' '.join(words)[:150]}", {}, words, nonsense=True)


def json_output_case(rng: random.Random, sound: dict[str, bytes]) -> Case:
    """A sound command that must print one JSON object and succeed."""
    base = rng.choice([words for words in SOUND_COMMANDS if words.split()[0] not in SLOW])
    words = base.split()
    if _has_json(*words[:2]):
        words.append("--json")
    return Case(f"sound: {' '.join(words)}", {}, words)
