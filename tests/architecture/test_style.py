"""Each figure of `benchmarks/style.py` stays within its limit."""

import pytest
import style

pytestmark = pytest.mark.style


def check(measure):
    figure = measure()
    assert figure.reached, f"{figure}\n" + "\n".join(figure.places)


def test_packed_assignments():
    check(style.packed_assignments)


def test_conditional_expressions():
    check(style.conditional_expressions)


def test_long_lines():
    check(style.long_lines)


def test_parsed_parameter_names():
    check(style.parsed_parameter_names)


def test_repeated_literals():
    check(style.repeated_literals)


def test_flags_below_command_line():
    check(style.flags_below_command_line)


def test_switches_between_siblings():
    check(style.switches_between_siblings)


def test_api_names():
    check(style.api_names)


def test_undocumented_names():
    check(style.undocumented_names)


def test_undocumented_results():
    check(style.undocumented_results)


def test_repeated_class_names():
    check(style.repeated_class_names)


def test_style_tests():
    check(style.style_tests)


def test_readme_words():
    check(style.readme_words)


def test_metaphors():
    check(style.metaphors)
