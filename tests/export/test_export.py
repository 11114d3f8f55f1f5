"""What an export says in its comments, what it refuses, and what only force lets through."""

import json

import mujoco
import numpy as np
import pytest

from steelyard.errors import InvalidInertia, UnknownName
from steelyard.export import TARGETS, ErrorLimits, Export
from steelyard.inertia import InertialParameters
from steelyard.payload import Payload
from steelyard.verdict import Aspect, Doubt, DoubtKind, Verdict
from steelyard.wrist._payload import WristPayload

GOOD = Verdict("all ten parameters were excited, and they are those of a real body")
FAR = Verdict(doubts=(Doubt(DoubtKind.NOT_PHYSICAL, "far"),))
NOT_EXCITED = Verdict(doubts=(Doubt(DoubtKind.NOT_EXCITED, "the motion says nothing about Izz"),))
INERTIA = np.array([[0.02, 0.003, -0.001], [0.003, 0.015, 0.002], [-0.001, 0.002, 0.012]])
BODY = InertialParameters.from_com(2.5, [0.01, -0.02, 0.06], INERTIA)
STD = np.array([0.01, 1e-3, 2e-3, 1e-3, *[1e-3] * 6])


def payload(body=BODY, std=STD, verdict=GOOD):
    return Payload(body, body, np.diag(np.square(std)), np.ones(6), verdict)


def sensed(T=None, inertia=INERTIA, **changes):
    body = InertialParameters.from_com(2.5, [0.01, -0.02, 0.06], inertia, "sensor")
    spread = np.zeros((18, 18))
    spread[:10, :10] = np.diag(STD**2)
    fields = {
        "drift": [4.0, -2.0, 6.0, 0.2, -0.3, 0.1],
        "inclination": np.zeros(2),
        "nominal_gravity": [0, 0, -9.81],
        "full_covariance": spread,
        "noise": np.ones(6),
        "trend": np.zeros(6),
        "trend_std": np.zeros(6),
        "T_flange_sensor": np.eye(4) if T is None else T,
        "verdict": GOOD,
    }
    return WristPayload(body, body, **(fields | changes))


def point():
    """What postures at rest show: mass and centre of mass, nothing of the inertia."""
    spread = np.zeros((18, 18))
    spread[:4, :4] = np.diag(STD[:4] ** 2)
    spread[range(4, 10), range(4, 10)] = np.inf
    words = "postures at rest say nothing about the inertia"
    verdict = Verdict("8 postures", (Doubt(DoubtKind.NOT_EXCITED, words, blocks=False),))
    return sensed(inertia=np.zeros((3, 3)), full_covariance=spread, verdict=verdict)


@pytest.mark.parametrize("to", TARGETS)
def test_comments_say_frame_units_uncertainty_and_status(to):
    text = payload().export(to, force=to == "ft-yaml")
    for words in (
        "frame of the target, assumed to be the frame 'flange' in which the payload was weighed",
        "Units: kg; ",
        "mass 2.500 +- 0.020 kg",
        "centre of mass +- 1.6 mm in its worst direction",
        "Ixx 0.0200 +- 0.0020",
        "a gripper that was mounted then is not included",
        f"Status: {GOOD.sentence}.",
    ):
        assert words in text, words
    assert ("FORCED" in text) == (to == "ft-yaml")
    assert ("could not be verified with a manual" in text) == (to in ("kuka", "fanuc"))
    assert text.isascii()
    assert text.endswith("\n")


def test_the_pose_of_the_frame_stands_in_the_file():
    T, turn = np.eye(4), np.pi / 2
    T[:2, :2] = [[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]]  # not quite zeros
    T[:3, 3] = [-1e-17, 0.0, 0.03]
    text = payload().export("ur", T_target_payload=T)
    assert "of the payload is at (0 0 0.03) m with the axes (rows) [0 -1 0; 1 0 0; 0 0 1]" in text
    assert "set_target_payload(2.5, [0.02, 0.01, 0.09]," in text


def test_names_and_numbers_stand_in_the_file():
    assert "PERS loaddata box_3 := [2.5,[10.0,-20.0,60.0]," in payload().export("abb", name="box_3")
    assert "LOAD_DATA[7]={M 2.5," in payload().export("kuka", number=7)
    assert "SCHEDULE No [4]" in payload().export("fanuc", number=4)
    assert json.loads(payload().export("franka", name="cup"))["name"] == "cup"
    with pytest.raises(UnknownName, match="has letters, digits and underscores only, got 'a box'"):
        payload().export("abb", name="a box")
    with pytest.raises(
        UnknownName, match="begins with a letter and has at most 32 characters, got '_x'"
    ):
        payload().export("abb", name="_x")
    with pytest.raises(UnknownName, match="numbers of payloads start at 1, got 0"):
        payload().export("kuka", number=0)


def test_unknown_targets_are_refused_with_those_there_are():
    with pytest.raises(
        UnknownName, match="not exported to 'yaskawa'; there are ur, ur-ros2, franka, "
    ):
        payload().export("yaskawa")


@pytest.mark.parametrize(
    ("target", "argument"),
    [("ur", {"name": "cup"}), ("abb", {"number": 2}), ("mecademic", {"inertia": "sphere"})],
)
def test_arguments_that_a_format_cannot_hold_are_refused(target, argument):
    (name,) = argument
    with pytest.raises(UnknownName, match=f"'{target}' cannot hold the {name} of a payload"):
        payload().export(target, **argument)


UNPHYSICAL = InertialParameters.from_com(2.0, [0.01, 0.0, 0.05], np.diag([0.01, 0.01, 0.05]))
DOUBTFUL = {
    "violate the triangle inequality": payload(UNPHYSICAL),
    "the estimate has a doubt: far": payload(verdict=FAR),
    "the estimate has a doubt: the motion says nothing about Izz": payload(verdict=NOT_EXCITED),
    "the mass is known to +- 11.8 % (95 %), more than 10 % allowed": payload(std=[0.15, *STD[1:]]),
    "the centre of mass is known to +- 23.5 mm (95 %), more than 20 mm": payload(
        std=[0.0, 0.03, *STD[2:]]
    ),
    "+- inf %": payload(std=[np.inf, *STD[1:]]),
}


@pytest.mark.parametrize("words", DOUBTFUL)
def test_doubtful_payloads_need_force_and_the_text_says_so(words):
    with pytest.raises(InvalidInertia) as refused:
        DOUBTFUL[words].export("ur")
    assert str(refused.value).startswith("not exported: ")
    assert words in str(refused.value)
    text = DOUBTFUL[words].export("ur", force=True)
    assert "FORCED in spite of a doubt: " in text.splitlines()[1]
    assert words in text


def test_doubts_have_kinds():
    def doubt_kinds(weighed, to="ur"):
        verdict = Export.of(weighed.as_load(), to).verdict
        assert verdict.ok == (not verdict.blocking)
        return [(doubt.kind, doubt.blocks) for doubt in verdict.doubts]

    assert doubt_kinds(payload()) == []
    assert doubt_kinds(payload(UNPHYSICAL)) == [(DoubtKind.NOT_PHYSICAL, True)]
    vague = payload(std=[0.15, *STD[1:9], np.inf], verdict=FAR)
    assert doubt_kinds(vague) == [
        (DoubtKind.NOT_PHYSICAL, True),
        (DoubtKind.TOO_UNCERTAIN, True),
    ]
    assert doubt_kinds(vague, "mecademic") == [
        (DoubtKind.NOT_PHYSICAL, True),
        (DoubtKind.TOO_UNCERTAIN, True),
    ]
    aside = Verdict(doubts=(Doubt(DoubtKind.GAINS, "guessed", blocks=False),))
    assert doubt_kinds(payload(verdict=aside)) == [(DoubtKind.GAINS, False)]


def test_a_file_is_written_whole_or_not_at_all(tmp_path):
    text = payload().export("ur", tmp_path / "payload.script")
    assert (tmp_path / "payload.script").read_text() == text
    with pytest.raises(InvalidInertia, match="not exported"):
        payload(UNPHYSICAL).export("abb", tmp_path / "load.mod")
    assert [path.name for path in tmp_path.iterdir()] == ["payload.script"]


def test_an_inertia_that_is_hardly_known_is_exported_with_a_word():
    assert "very uncertain" not in payload().export("abb")
    vague = payload(std=[*STD[:4], *[0.02] * 6])
    assert "It is very uncertain: the largest half-width exceeds" in vague.export("abb")


def test_limits_may_be_set():
    payload(std=[0.15, *STD[1:]]).export("ur", limits=ErrorLimits(mass=0.12))
    with pytest.raises(InvalidInertia, match=r"\+- 1.58 mm \(95 %\), more than 1 mm allowed"):
        payload().export("ur", limits=ErrorLimits(com=0.001))
    with pytest.raises(
        InvalidInertia, match=r"error limits must be positive, got 0 of the mass and 0.02 m"
    ):
        ErrorLimits(mass=0.0)


@pytest.mark.parametrize("to", TARGETS)
def test_nothing_negative_ever_leaves(to):
    light = InertialParameters.from_vector(-BODY.vector)
    with pytest.raises(
        InvalidInertia, match=r"this payload cannot be exported: the mass is -2.5 kg"
    ):
        payload(light).export(to, force=True)
    if TARGETS[to].inertia:
        hollow = InertialParameters.from_com(2.0, [0.01, 0.0, 0.05], np.diag([-0.002, 0.01, 0.011]))
        with pytest.raises(
            InvalidInertia, match=r"negative moment of inertia, -0.002 kg m\^2 .* even by force"
        ):
            payload(hollow).export(to, force=True)


def test_the_controller_of_universal_robots_takes_133():
    huge = InertialParameters.from_com(900.0, [0, 0, 0.1], np.diag([140.0, 130.0, 120.0]))
    for to in ("ur", "ur-ros2"):
        with pytest.raises(
            InvalidInertia, match=r"a component of 140 kg m\^2; the controller accepts at most 133"
        ):
            payload(huge).export(to, force=True)
        with pytest.raises(InvalidInertia, match="900 kg is more than any such arm carries, 35"):
            payload(huge).export(to)
    assert "[1.0,0.0,0.0,0.0],140.0,130.0,120.0];" in payload(huge).export("abb")


def test_a_wrist_sensor_must_be_placed():
    with pytest.raises(
        InvalidInertia, match="weighed in the frame of a wrist sensor: give the pose of the sensor"
    ):
        sensed().export("ur")
    T = np.eye(4)
    T[2, 3] = 0.04
    text = sensed(T).export("ur", T_target_payload=T)
    assert "[0.01, -0.02, 0.1]" in text
    assert "the load on the wrist sensor, without the sensor itself" in text


def test_force_torque_tools_get_the_zero_drift_in_the_sensor_frame():
    text = sensed().export("ft-yaml")
    assert "bias: [4.0, -2.0, 6.0, 0.2, -0.3, 0.1]\n" in text
    assert "gripper_com_frame_id: sensor\n" in text
    assert "negate all six numbers if the driver reports the opposite sign" in text
    T = np.diag([-1.0, -1.0, 1.0, 1.0])
    with pytest.raises(
        InvalidInertia, match="zero drift of the sensor was not measured in this frame"
    ):
        sensed().export("ft-yaml", T_target_payload=T)
    with pytest.raises(InvalidInertia, match="zero drift of the sensor was not measured"):
        payload().export("ft-yaml")


def test_mass_and_centre_alone_are_enough_where_no_inertia_is_asked_for():
    T = np.eye(4)
    T[:3, 3] = [0.1, 0.2, 0.3]
    assert "SetPayload(2.5,110.0,180.0,360.0)" in point().export("mecademic", T_target_payload=T)
    assert "gripper_mass: 2.5" in point().export("ft-yaml")
    with pytest.raises(InvalidInertia, match="are unknown"):
        point().export("abb", T_target_payload=T, inertia="estimated")
    text = point().export("abb", T_target_payload=T, inertia="estimated", force=True)
    assert "[1.0,0.0,0.0,0.0],0.0,0.0,0.0];" in text
    assert "The inertia was not measured." in text
    text = point().export("mjcf", T_target_payload=T, inertia="estimated", force=True)
    assert mujoco.MjModel.from_xml_string(text).body_mass[1] == 2.5


@pytest.mark.parametrize("to", ["ur", "abb", "urdf"])
def test_a_sphere_stands_in_for_an_inertia_that_is_not_to_be_used(to):
    bent = Doubt(DoubtKind.NOT_PHYSICAL, "no body has it", concerns=(Aspect.INERTIA,))
    unfit = payload(UNPHYSICAL, verdict=Verdict("", (bent,)))
    text = unfit.export(to)
    assert "a homogeneous sphere of 2700 kg/m^3" in text
    assert "FORCED" not in text
    assert "sphere" not in payload().export(to)
    with pytest.raises(InvalidInertia, match="no body has it"):
        unfit.export(to, inertia="estimated")
    unknown = payload(std=[*STD[:9], np.inf])
    assert "sphere" in unknown.export(to)
