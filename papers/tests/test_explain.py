"""Which assumption makes a printed number come out: laws of the search, and rows of the papers."""

import re
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from steelyard.drawing import Plot
from steelyard.errors import UnknownName
from steelyard_papers import PAPERS
from steelyard_papers import explain as tool
from steelyard_papers.explain import Assumption, OpenRow, searched
from steelyard_papers.xu2024 import open_rows
from steelyard_papers.xu2024.simulated import ENCODER_STEPS

pytestmark = pytest.mark.thorough


def row(numbers, *, printed=None, plausible=(0.0, 2.0), values=(0.0, 1.0, 2.0), bound=False):
    printed = printed or {"force": 5.0}
    assumption = Assumption("tilt", "°", values, plausible, "assumed", numbers)
    return OpenRow("force", "N", printed, 0.005, (assumption,), is_bound=bound)


def search(made):
    return searched(made, made.assumptions[0])


def test_a_number_comes_out_where_a_curve_crosses_it():
    """8 x^2 = 5 at x = 0.79; values between those that were asked for are tried."""
    noise = np.random.default_rng(1).normal(size=8)
    found = search(row(lambda x: {"force": (8 * x**2 + 0.01 * noise).tolist()}))
    assert found.best == pytest.approx(np.sqrt(5 / 8), abs=0.01)
    assert found.explains
    assert f"5 N comes out at {found.best:.3g} °" in found.sentence


def test_a_number_that_no_value_gives_comes_out_for_none():
    found = search(row(lambda x: {"force": [1 + x]}))
    assert not found.explains
    assert "comes out for no value from 0 to 2 °; nearest is 3 at 2 °" in found.sentence


def test_a_value_that_contradicts_another_number_of_the_table_is_no_explanation():
    printed = {"force": 5.0, "deviation": 0.2}
    found = search(row(lambda x: {"force": [5 * x], "deviation": [3 * x]}, printed=printed))
    assert found.comes_out.any()
    assert not found.explains
    assert "But there deviation would be 3 (printed 0.2)" in found.sentence
    found = search(row(lambda x: {"force": [5 * x], "deviation": [0.22]}, printed=printed))
    assert found.explains


def test_of_the_other_numbers_it_says_how_many_lie_within_their_scatter():
    """10.9 is within a fifth of 10, but not within its scatter."""
    printed = {"force": 5.0, "mean": 10.0, "deviation": 0.2}
    numbers = {"mean": [10.9], "deviation": [0.2]}
    found = search(row(lambda x: {"force": [5 * x], **numbers}, printed=printed))
    assert found.explains
    words = " The other printed numbers there: 1 of 2 within the scatter, all within 9 %."
    assert found.sentence.endswith(words)


def test_of_values_that_give_the_number_the_one_is_named_that_gives_most_others():
    """Both values are within the scatter of 5 N; the farther one gives the mean, too."""
    runs = np.array([-0.5, 0.0, 0.5])
    means = {0.0: 3.0, 1.0: 5.1, 1.1: 5.0, 2.0: 7.0}
    made = row(
        lambda x: {"force": (means[x] + runs).tolist(), "mean": [10.0 + 10 * abs(x - 1.0)]},
        printed={"force": 5.0, "mean": 10.0},
        values=tuple(means),
    )
    found = search(made)
    assert found.best == 1.0
    assert "There mean, printed 10, is 10." in found.sentence


def test_the_ends_of_a_band_lie_between_the_values_that_were_tried():
    """5 N lie within 2 std + 0.005 of 1 + 4 x where x is within 0.25 of 1, nearly."""
    runs = np.array([-0.5, 0.0, 0.5])
    made = row(lambda x: {"force": (1 + 4 * x + runs).tolist()})
    found = search(made)
    ((low, high),) = found.bands
    half = (2 * 0.5 + 0.005) / 4
    assert (low, high) == pytest.approx((1 - half, 1 + half))
    assert "within its scatter from 0.7488 to 1.251" in found.sentence


def test_a_band_ends_with_the_last_value_that_was_tried():
    found = search(row(lambda x: {"force": [4.0 + x]}, values=(0.0, 0.5, 1.0)))
    assert found.bands == [(pytest.approx(0.995), 1.0)]


def test_a_value_outside_of_the_plausible_range_is_no_explanation():
    found = search(row(lambda x: {"force": [5 * x]}, plausible=(0.0, 0.5)))
    assert found.comes_out.any()
    assert not found.explains
    assert "outside of the plausible 0 to 0.5 °" in found.sentence


def test_a_plausible_value_within_the_scatter_explains_though_another_is_nearer():
    """5 N comes out at 1 and, nearer, at 1.1, which is not plausible."""
    runs = np.array([-0.5, 0.0, 0.5])
    made = row(
        lambda x: {"force": (1.0 + 3.7 * x + runs).tolist()},
        plausible=(0.0, 1.0),
        values=(0.5, 1.0, 1.08, 1.5),
    )
    found = search(made)
    assert found.comes_out.tolist() == [False, True, True, False]
    assert found.best == 1.0
    assert found.explains


def test_a_bound_comes_out_from_the_first_value_that_reaches_it():
    found = search(row(lambda x: {"force": [9 - 4 * x]}, bound=True))
    assert found.best == pytest.approx(1.0)
    assert found.comes_out.tolist() == [False, True, True]


def test_a_page_shows_the_number_over_each_assumption():
    made = row(lambda x: {"force": [8 * x**2, 8 * x**2 + 0.1]})
    page = tool.Explanation("liu2025", made, [search(made)]).page
    plot = next(part for section in page.sections for part in section.parts)
    assert isinstance(plot, Plot)
    names = [curve.name for curve in plot.panels[0].curves]
    assert names == ["plausible range", "two standard deviations", "paper's method here", "printed"]
    assert "explained by tilt" in page.answer[0]
    assert "plausible range" in page.html()


def test_unknown_rows_are_refused_and_listed():
    with pytest.raises(UnknownName, match=r"xu2024 has no row 'mass' to explain; there are algo"):
        tool.explain("xu2024", "mass")
    import typer

    from steelyard_papers.command import command

    app = typer.Typer()
    app.command()(command)
    said = CliRunner().invoke(app, ["all", "--explain", "list"])
    assert said.exit_code == 0, said.output
    for paper in ("ding2019", "gaz2017", "liu2025", "xu2024"):
        assert f"{paper}: " in said.output


def test_every_row_that_a_page_names_can_be_explained():
    """Reasons refer to rows; a row that was renamed would leave a reason that nothing shows."""
    named = set()
    for paper, module in PAPERS.items():
        folder = Path(import_module(module).__file__).parent
        for path in folder.glob("*.py"):
            text = re.sub(r'"\s+f?"', "", path.read_text(encoding="utf-8"))
            named |= {(paper, row) for row in re.findall(r"--explain ([a-z0-9-]+)", text)}
    assert ("liu2025", "force-method-1") in named
    assert all(row in tool.open_rows(paper) for paper, row in named)


# --- rows of the papers, with few seeds


def test_algorithm_1_is_explained_by_the_encoders_and_not_by_noise(pair_of_runs):
    """The band holds every step that the page calls equal: both try the same steps and seeds."""
    made = open_rows.algorithm_1_row(pair_of_runs, seeds=4)
    by_step, by_noise = (searched(made, each) for each in made.assumptions)
    assert set(ENCODER_STEPS) <= set(by_step.found)
    ((low, high),) = by_step.bands
    equal = [
        step
        for step in ENCODER_STEPS
        if by_step.found[step]["mass"].holds(made.printed["mass"], made.digit)
    ]
    assert 1.15e-4 in equal
    assert low <= min(equal) <= max(equal) <= high < 1.5e-4
    assert low not in by_step.found
    assert by_step.explains
    assert by_step.best == pytest.approx(1.15e-4, abs=0.06e-4)
    assert not by_noise.comes_out.any()


def test_the_time_of_convergence_is_explained_by_white_noise_of_a_third():
    made = open_rows.convergence_row(seeds=3)
    by_share = searched(made, made.assumptions[0])
    assert by_share.explains
    assert by_share.best == pytest.approx(0.35, abs=0.08)


def test_the_condition_number_needs_joints_2_and_3_to_be_correlated():
    made = open_rows.condition_row()
    first, second, _ = made.assumptions
    of_2_and_3 = searched(made, replace(first, values=(0.7, 0.9)))
    of_1_and_2 = searched(made, replace(second, values=(0.9,)))
    assert of_2_and_3.explains
    assert 0.80 < of_2_and_3.best < 0.84
    assert not of_1_and_2.comes_out.any()
