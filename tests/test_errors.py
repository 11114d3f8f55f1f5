"""Messages name arguments, and other texts can be put in their places."""

from steelyard.errors import InvalidRobot, reword_arguments


def in_capitals(name, value):
    if name == "unknown":
        return None
    if value is None:
        return name.upper()
    return f"{name.upper()} {value}"


def test_arguments_are_reworded():
    message = "two arms: give `flange`, or `columns={'tau': 'effort'}`; `unknown=1` and 'x' stay"
    expected = "two arms: give FLANGE, or COLUMNS {'tau': 'effort'}; `unknown=1` and 'x' stay"
    assert reword_arguments(message, in_capitals) == expected


def test_an_error_is_reworded():
    error = InvalidRobot("give `flange`")
    error.reword(in_capitals)
    assert str(error) == "give FLANGE"
