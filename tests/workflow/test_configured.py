"""The payload that is set on a controller, beside the weighed one."""

import numpy as np
import pytest

from steelyard.inertia import InertialParameters
from steelyard.payload import Payload
from steelyard.recording import Recording
from steelyard.verdict import Aspect, DoubtKind, Fitness, Verdict
from steelyard.workflow._configured import configured_payload_doubts

BODY = InertialParameters.from_com(2.5, [0.01, 0.02, 0.06], 0.01 * np.eye(3), "flange")
STD = np.array([0.03, *np.full(9, 0.001)])
WEIGHED = Payload(BODY, BODY, np.diag(STD**2), np.ones(6), Verdict("weighed"))


def rtde(mass, **more):
    """A table with RTDE's names; the payload as the controller reports it, (N,) or one number."""
    t = 0.01 * np.arange(50)
    q = np.linspace(0.0, 1.0, 300).reshape(50, 6)
    columns = {"timestamp": t, **{f"actual_q_{k}": q[:, k] for k in range(6)}, **more}
    columns |= {f"actual_current_{k}": 1 + q[:, k] for k in range(6)}
    return columns | {"payload": np.broadcast_to(mass, t.shape)}


@pytest.mark.parametrize("mass", [2.5, 2.55, 2.45])
def test_a_controller_that_agrees_says_nothing(mass):
    run = Recording.from_dataframe(rtde(mass))
    assert configured_payload_doubts([run, None], WEIGHED) == []


@pytest.mark.parametrize("mass", [0.0, 1.2, 2.6])
def test_another_mass_is_said_and_counts_against_no_number(mass):
    run = Recording.from_dataframe(rtde(mass))
    (doubt,) = configured_payload_doubts([run], WEIGHED, beyond="the empty arm")
    assert doubt.kind is DoubtKind.CONFIGURED_PAYLOAD
    assert f"set to {mass:g} kg, which is not what was weighed beyond the empty arm" in doubt.words
    verdict = WEIGHED.verdict.doubted(doubt)
    assert verdict.ok
    assert verdict.fitness(Aspect.MASS) is Fitness.USE
    assert str(doubt) in str(verdict)
    assert Verdict.from_dict(verdict.to_dict()) == verdict


def test_a_change_during_the_run_is_said():
    run = Recording.from_dataframe(rtde(np.where(np.arange(50) < 20, 0.0, 2.5)))
    (doubt,) = configured_payload_doubts([run], WEIGHED)
    assert "changed from 0 to 2.5 kg" in doubt.words


def test_targets_of_the_controller_contain_what_is_set():
    run = Recording.from_dataframe(rtde(2.5))
    (doubt,) = configured_payload_doubts([run], WEIGHED, method="manufacturer")
    assert doubt.blocks
    assert "torques contain the payload of 2.5 kg" in doubt.words


def test_a_payload_column_of_another_program_is_not_the_controllers():
    columns = rtde(2.5)
    other = {name.replace("actual_", ""): values for name, values in columns.items()}
    assert Recording.from_dataframe(other).configured_mass is None
    asked = Recording.from_dataframe(other, columns={"configured_mass": "payload"})
    assert asked.configured_mass[0] == 2.5


def test_a_controller_that_sends_no_payload_is_no_fault():
    assert Recording.from_dataframe(rtde(np.nan)).configured_mass is None
