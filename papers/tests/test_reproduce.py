"""The papers recomputed: structure and laws on cheap parts; whole pages belong to `make bench`."""

import json
import subprocess
import sys
import tomllib
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from steelyard.cli import _app
from steelyard.errors import InvalidSamples, UnknownName
from steelyard.excitation import ConditionNumber, Design, DesignLimits, Liu2025, PostureSet
from steelyard.io import write
from steelyard.report import Page, Section, Table
from steelyard.robot import ParameterBasis, load_robot
from steelyard.trajectory import FourierTrajectory
from steelyard.verdict import Verdict
from steelyard.wrist._kalman import PoseKalmanFilter
from steelyard_papers import PAPERS, ding2019, liu2025, reproduce
from steelyard_papers import command as verb
from steelyard_papers.ding2019 import fits, printed, readings, sections, world
from steelyard_papers.ding2019 import open_rows as ding_rows
from steelyard_papers.explain import Scatter, agreement
from steelyard_papers.headline import HEAD, Claim, Count, State, opening
from steelyard_papers.index import index_html
from steelyard_papers.liu2025 import answers, cell_sections, literal, method_1_rows, motions
from steelyard_papers.liu2025 import sections as liu_sections
from steelyard_papers.liu2025 import world as liu_world
from steelyard_papers.liu2025.cell import PERFECT, REAL, SLIGHT, _played
from steelyard_papers.sharing import every, part_of, with_spread

pytestmark = pytest.mark.thorough


def nothing(share: float) -> None:
    assert 0.0 <= share <= 1.0


def tables(section: Section) -> list[Table]:
    return [part for part in section.parts if isinstance(part, Table)]


def require_whole(section: Section) -> None:
    for table in tables(section):
        assert table.rows
        assert {len(row) for row in table.rows} == {len(table.head)}, table.caption


def design_of(robot, limits, trajectory) -> Design:
    value = ConditionNumber().evaluate(robot, trajectory, limits=limits)
    return Design(
        trajectory,
        limits.certify(robot, trajectory),
        "condition",
        value,
        value,
        {},
        (value,),
        0.0,
        Verdict("random"),
    )


# --- what all papers share ---


def test_progress_of_a_part_fills_its_part():
    shares = []
    report = part_of(shares.append, 0.2, 0.6)
    for share in (0.0, 0.5, 1.0, 2.0):
        report(share)
    assert shares == pytest.approx([0.2, 0.4, 0.6, 0.6])
    part_of(None, 0.0, 1.0)(0.5)


def test_a_plot_gets_about_as_many_rows_as_wanted():
    assert 500 <= len(range(2501)[every(2501, 500)]) <= 510
    assert len(range(30)[every(30, 500)]) == 30


def test_an_unknown_paper_is_refused():
    with pytest.raises(UnknownName, match=r"no paper 'smith1999'; there are ding2019"):
        reproduce("smith1999")
    with pytest.raises(UnknownName, match=r"no paper 'smith1999'; there are .*all"):
        verb.command("smith1999")


@pytest.fixture
def two_papers(monkeypatch):
    """Two tiny papers in place of the real ones."""
    for name in ("one", "two"):
        page = Page(
            f"{name} & more",
            [f"{name} <agrees>."],
            [Section("Part", [], [Table("T", ("a",), [(1.5,)])])],
        )
        monkeypatch.setitem(
            sys.modules, f"tiny_{name}", SimpleNamespace(page=lambda progress, page=page: page)
        )
    for name in list(PAPERS):
        monkeypatch.delitem(PAPERS, name)
    monkeypatch.setitem(PAPERS, "one", "tiny_one")
    monkeypatch.setitem(PAPERS, "two", "tiny_two")


def run(*words: str) -> str:
    app = typer.Typer()
    app.command()(verb.command)
    done = CliRunner().invoke(app, list(words), catch_exceptions=False)
    assert done.exit_code == 0
    return done.stdout


def test_the_verb_writes_a_page_and_numbers_for_each_paper_and_an_index(two_papers, tmp_path):
    results = json.loads(run("all", "-o", str(tmp_path), "--json"))
    assert set(results) == {"one", "two", "index"}
    assert {p.name for p in tmp_path.iterdir()} == {
        "one.html",
        "one.json",
        "two.html",
        "two.json",
        "index.html",
    }
    (section,) = json.loads((tmp_path / "two.json").read_text())["sections"]
    assert section["parts"][0]["rows"] == [[1.5]]
    assert results["one"]["answer"] == ["one <agrees>."]
    words = run("one", "-o", str(tmp_path / "sub"))
    assert "one <agrees>." in words
    assert {p.name for p in (tmp_path / "sub").iterdir()} == {"one.html", "one.json"}


def test_the_verb_is_one_of_the_command_line():
    done = subprocess.run(
        [sys.executable, "-m", "steelyard", "--help"], capture_output=True, text=True
    )
    assert "reproduce" in done.stdout


def test_the_index_links_every_page_and_escapes_words():
    text = index_html({"one": Page("A < B", ["less & more"], []), "two": Page("C", ["d"], [])})
    assert 'href="one.html"' in text
    assert 'href="two.json"' in text
    assert "A &lt; B" in text
    assert "less &amp; more" in text


def claimed(*printed, **more):
    """A claim that refers to a row of `--explain`."""
    return Claim(*printed, **({"row": "algorithm-1"} | more))


def test_a_printed_number_has_one_of_four_states():
    runs = [1.0, 1.1, 0.9]
    tried = {"coarse": [1.4, 1.5, 1.6], "fine": runs}
    claims = [
        claimed("inside", "kg", 1.05, runs, [1.0], ideal=1.0),
        claimed("error, here smaller", "kg", 1.5, runs),
        claimed("error, here larger", "kg", 0.5, runs),
        claimed("rounded", "", 1.23, [1.2342], digit=0.005),
        claimed("open", "kg", 1.5, tried, {"coarse": [7.0]}),
        claimed("excluded", "kg", 1.5, tried, contradicted=["coarse"]),
        claimed("truth is missed", "kg", 1.5, runs, ideal=2.0),
    ]
    states = [claim.state for claim in claims]
    assert states == ["equal", "better here", "worse here", "equal", "depends", "better here",
                      "worse here"]  # fmt: skip
    assert claims[4].cells[-1] == "depends: 1.50 ± 0.20 with coarse"
    assert claims[4].cells[3] == pytest.approx(1.5)  # the first assumption
    assert claimed("digits", "kg", 40.164, [40.2]).cells[2] == "40.164"
    assert claims[4].cells[5] == 7.0
    assert claims[4].cells[7] == "coarse"
    assert claimed("digits", "N", 8.6, [8.6], digit=0.005).cells[2] == "8.60"
    assert claimed("digits", "Nm", 3.0, [3.2], digit=0.5).cells[2] == "3"
    assert claims[5].cells[3] == pytest.approx(1.5)  # the page's own, though it has no vote
    unfitted = claimed("open", "kg", 1.0, tried, {"coarse": [7.0]})
    assert unfitted.cells[-1] == "depends: 1.00 ± 0.20 with fine"
    assert unfitted.cells[3] == pytest.approx(1.5)  # not the one that fits
    assert unfitted.cells[5] == 7.0
    assumed = Claim("assumed", "Nm", 22.4, runs, rests_on="noise")
    assert assumed.state == "depends"
    assert assumed.cells[-1] == "depends on noise; nothing that was tried gives it"
    scattered = [claimed("both", "N", 1.205, runs, digit=digit) for digit in (0.0, 0.006)]
    assert [claim.state for claim in scattered] == ["better here", "equal"]
    counts = [Count("parameters", 12, 12), Count("contacts", 3, 2)]
    answer, (table, short) = opening(
        "xu2024", claims, "the rest.", counts=counts, findings=["A finding."]
    )
    assert answer == [
        "Of 7 printed numbers, the paper's own method gives 2 equal within its scatter, 2 better"
        " and 2 worse here; 1 depends on an assumption that the paper leaves open. Of 2 counts of"
        " its structure, 1 agrees."
    ]
    first, structure = tables(table)
    assert first.met == [True, True, False, True, None, True, False]
    assert (
        "steelyard reproduce xu2024 --explain ROW` tries them, for example algorithm-1;"
        in first.note
    )
    assert structure.rows == [("parameters", 12, 12, "yes"), ("contacts", 3, 2, "no")]
    assert short.text == ["Left out: the rest.", "A finding."]
    page = Page("t", answer, [table, short])
    assert page.html().count('<tr class="met">') == 5


def test_a_number_that_no_assumption_gives_is_shown_under_that_of_the_page():
    """Not under the nearest one, which would be a choice that flatters."""
    own = [0.180, 0.185, 0.190]
    nearer = [0.226, 0.227, 0.228]
    claim = claimed("deviation", "N", 0.24, {"as identified": own, "turned": nearer})
    assert claim.state is State.BETTER
    assert claim.cells[3] == pytest.approx(0.185)
    assert claim.cells[7:] == ("as identified", "better here")
    assert len(claim.cells) == len(HEAD)


def test_a_number_depends_where_assumptions_do_not_agree_though_none_gives_it():
    claim = claimed(
        "force",
        "N",
        1.0,
        {"calm": [0.1, 0.11], "rough": [3.0, 3.1]},
        {"rough": [2.0]},
    )
    assert claim.state is State.DEPENDS
    assert claim.cells[3] == pytest.approx(0.105)
    assert claim.cells[5] is None  # ours under the other assumption is not shown beside it
    words = "depends: better here with calm; worse here with rough; nothing that was tried gives it"
    assert claim.cells[-1] == words


def test_pages_and_explain_have_one_criterion():
    """Scatter and rounding add up: 2 std are 0.2, half of the last digit 0.05."""
    runs = [1.0, 1.1, 0.9]
    for number, equal in ((1.24, True), (1.26, False)):
        claim = claimed("mass", "kg", number, runs, digit=0.05)
        assert (claim.state is State.EQUAL) is equal
        assert Scatter.of(runs).holds(number, 0.05) is equal
        assert agreement([(Scatter.of(runs), number, 0.05)]).held == equal


# --- ding2019 ---


@pytest.fixture(scope="module")
def tx60():
    return world.paper_arm()


@pytest.fixture(scope="module")
def comparison(tx60):
    """Both methods on two runs of a random motion in the world that the paper assumes."""
    limits = world.table_2(tx60)
    centre = np.array([0.1, -0.3, 0.6, 0.2, 0.3, 0.4])
    first, second, *_ = world._random_motions(tx60, limits, centre, count=2)
    found = world.Motions(design_of(tx60, limits, first), limits, second, np.array([100.0, 200.0]))
    runs = world.run_world(
        "as the paper assumes", tx60, found, runs=2, progress=nothing, step_s=0.004
    )
    return found, fits.compare(runs, tx60, laws=("smooth",), progress=nothing)


def test_table_3_lists_the_base_parameters_of_the_arm(tx60):
    names = {parameter.symbol for parameter in ParameterBasis.of(tx60).parameters}
    assert names - set(printed.TABLE_3) == {f"B{j}" for j in range(1, 7)}
    assert set(printed.TABLE_3) <= names
    assert {printed.unit_of(name) for name in names} == {"kg m", "kg m²", "Nm", "Nm s/rad"}
    assert printed.unit_of("mx3") == "kg m"
    assert printed.unit_of("Ia4") == "kg m²"


def test_true_parameters_give_the_torque_of_the_arm(tx60, rng):
    q, v, a = rng.normal(size=(3, 20, 6))
    basis = ParameterBasis.of(tx60)
    theta = np.array(list(fits.true_parameters(tx60).values()))
    np.testing.assert_allclose(
        basis.reduce(tx60.regressor(q, v, a)) @ theta, tx60.torque(q, v, a), atol=1e-9
    )


def test_gears_have_more_friction_at_low_speed_and_under_load(tx60):
    richer = world.gear_friction(tx60)
    q, a = np.full((1, 6), 0.4), np.zeros((1, 6))
    slow = np.full((1, 6), 0.02)
    assert (np.abs(richer.torque(q, slow, a) - tx60.torque(q, slow, a)) > 0.02).all()
    assert [link.mass for link in richer.links] == [link.mass for link in tx60.links]


def test_random_motions_keep_table_2(comparison, tx60):
    found, _ = comparison
    assert found.limits.certify(tx60, found.verification).holds


def test_the_papers_method_has_no_offsets_and_both_find_the_coulomb_friction(comparison):
    _, both = comparison
    for answer in (both.paper, both.ours):
        truth = fits.true_parameters(both.world.robot)
        found = dict(zip(answer.names, answer.mean, strict=True))
        for j in range(1, 7):
            assert found[f"Fc{j}"] == pytest.approx(truth[f"Fc{j}"], rel=0.15)
    offsets = [i for i, name in enumerate(both.paper.names) if name.startswith("B")]
    assert not both.paper.mean[offsets].any()
    assert both.ours.mean[offsets].all()


def test_ordinary_least_squares_without_offsets_is_the_plain_solution(comparison):
    _, both = comparison
    from steelyard.signals import prepare

    model, samples = both.paper.models[0], prepare(both.world.runs[0], fits.PAPER)
    rows = model.rows(samples)
    kept = [i for i, name in enumerate(model.estimate.names) if not name.startswith("B")]
    Y, tau = rows.Y[rows.usable][:, kept], rows.tau[rows.usable]
    plain = np.linalg.lstsq(Y, tau, rcond=None)[0]
    np.testing.assert_allclose(model.estimate.value[kept], plain, rtol=1e-5, atol=1e-7)


def test_the_command_line_makes_the_choices_of_ding2019(comparison, tmp_path):
    both = comparison[1]
    runs = [tmp_path / f"{k}.npz" for k in range(len(both.world.runs))]
    for recording, path in zip(both.world.runs, runs, strict=True):
        write(recording, path)
    filters = ("--order", "5", "--cutoff", "10", "--torque-cutoff", "10", "--fourier", "10,5")
    rows = ("--lowest-speed", "0.05", "--friction", "linear", "--lag", "0")
    solved = ("--method", "ordinary", "--no-offsets", "--mean-of-runs", "--json")
    model = str(tmp_path / "model.json")
    words = ("identify", "tx60", *map(str, runs), "-o", model, *filters, *rows, *solved)
    done = CliRunner().invoke(_app("identify"), words)
    values = json.loads(done.stdout)["parameters"].values()
    np.testing.assert_allclose(list(values), both.paper.mean, rtol=1e-5, atol=1e-7)


def test_ours_predicts_closer_to_the_noise_than_the_papers_method(comparison):
    _, both = comparison
    noise = both.floor.rms
    assert both.floor.rms == pytest.approx(world.NOISE, rel=0.05)
    assert np.mean(both.ours.validation.rms / noise) < np.mean(both.paper.validation.rms / noise)
    assert (both.paper.validation.rms > 0.98 * noise).all()


def test_no_reading_of_table_4_gives_the_printed_correlations(comparison, monkeypatch):
    table = readings.readings_table(comparison[1])
    assert len(table.rows) == 7
    off = {row[0]: row[-1] for row in table.rows[1:]}
    assert min(off.values()) > 0.05
    first = comparison[1].paper.validation.correlation
    np.testing.assert_allclose(table.rows[1][1:7], first, atol=1e-9)
    assert "None of them gives" in table.note
    assert not readings.readings_that_fit(comparison[1])
    monkeypatch.setattr(readings, "CORRELATION", first)
    assert readings.readings_that_fit(comparison[1]) == ["verification, torques as measured"]
    assert "comes out by verification, torques as measured." in (
        readings.readings_table(comparison[1]).note
    )


def test_an_assumption_stands_on_a_page_only_where_explain_tries_it():
    tried = {"coarse": [1.4, 1.5], "fine": [1.0, 1.1]}
    with pytest.raises(UnknownName, match="mass: assumptions need a row that `--explain` takes"):
        Claim("mass", "kg", 1.5, tried)
    with pytest.raises(UnknownName, match="mass: a simulated number rests on assumptions, so give"):
        Claim("mass", "kg", 1.5, tried["fine"])
    claim = Claim("mass", "kg", 1.5, tried, row="weather")
    with pytest.raises(UnknownName, match="xu2024 has no row 'weather' that `--explain` takes"):
        opening("xu2024", [claim], "nothing.")


def test_reasons_for_table_4_are_those_that_explain_finds(comparison):
    """Noise is a reason up to half of a joint's torque; joints 2 and 6 would need more."""
    both = comparison[1]
    claims = ding2019._claims(both)
    assert [claim.row for claim in claims] == list(ding_rows.ROWS)
    for claim in claims:
        reasons = [words for words in claim.here if words != ding2019._AS_HERE]
        assert claim.state is State.DEPENDS
        assert ("nothing that was tried gives it" in claim.cells[-1]) == (not reasons)
    joint = ding_rows.OpenJoint.of(1, both)
    noise = ding_rows.rms_row(1, both).assumptions[0]
    assert noise.plausible[1] == pytest.approx(0.5 * both.paper.predicted[:, 1].std())
    drawn = joint.numbers(4.0, missed=0.0, size=2.0)
    assert np.mean(drawn["RMS"]) == pytest.approx(4.0, rel=0.02)
    size = 2.0 * both.paper.predicted[:, 1].std()
    expected = 1 / np.sqrt(1 + (4.0 / size) ** 2)
    assert np.mean(drawn["correlation"]) == pytest.approx(expected, abs=0.002)


def test_formula_7_counts_what_the_rank_shows(tx60):
    assert world.formula_7(*world.joint_axes(tx60)) == (5, 0, 1)
    assert sections.link_counts(tx60) == (36, 36)
    planar = np.array([[0, 0, 1.0]] * 3)  # gravity and two parallel axes, one beside the other
    assert world.formula_7(planar, np.array([[0, 0, 0.0], [1, 0, 0]])) == (0, 1, 1)


def test_runs_are_runs_and_get_warmer(comparison, tx60):
    first, second = comparison[1].world.runs
    assert np.abs(first.q - second.q).max() > 1e-5  # another motion, not another noise on the same
    warm = world.warmer(tx60, 5.0).drive
    np.testing.assert_allclose(warm.viscous, tx60.drive.viscous * np.exp(-0.1))
    assert world.table_2(tx60).height[0] == pytest.approx(0.2 - 0.375)


def test_sections_of_ding2019_are_whole(comparison, tx60):
    found, both = comparison
    made = [
        sections.motion_section(tx60, found),
        sections.parameter_section(both),
        sections.torque_section(both),
        sections.scatter_section(both, both),
        sections.readings_section(both, both),
        sections.what_is_missing(),
        *opening("ding2019", ding2019._claims(both), "nothing", counts=ding2019._counts(both))[1][
            :1
        ],
    ]
    for section in made:
        require_whole(section)
    assert {claim.state for claim in ding2019._claims(both)} == {State.DEPENDS}
    assert len(ding2019._claims(both)) == 12
    assert len(tables(made[1])[0].rows) == 58
    assert tables(made[2])[0].rows[1][2] == 22.3964
    assert ding2019._findings(found, both, both)


# --- liu2025 ---


@pytest.fixture(scope="module")
def kr60():
    return load_robot("kr60ha")


def wrist_motion(seed: int, size: float) -> FourierTrajectory:
    middle = load_robot("kr60ha").home + motions._MIDDLE
    return FourierTrajectory.random(
        middle,
        reach=[1e-9] * 3 + [1.2 * size, 0.6 * size, 1.5 * size],
        speed=[1e-9] * 3 + [2.5 * size] * 3,
        period_s=5.0,
        harmonics=3,
        seed=seed,
    )


@pytest.fixture(scope="module")
def cell(kr60):
    """Seven postures and short motions; every method for one seed."""
    turns = np.random.default_rng(3).uniform(-0.9, 0.9, size=(7, 3))
    q = kr60.home + motions._MIDDLE + np.column_stack([np.zeros((7, 3)), turns])
    postures = PostureSet.at(kr60, q)
    limits = DesignLimits(kr60.limits)
    series = wrist_motion(1, 1.0)
    found = design_of(kr60, limits, series)
    planned = motions.Motions(
        limits, postures, postures, found, found, 1.0, wrist_motion(2, 1.0), wrist_motion(3, 0.3)
    )
    runs = liu_world.run_world(kr60, planned, duration_s=5.0, progress=nothing, step_s=0.004)
    tuned_on = []
    tuned = PoseKalmanFilter.tuned.__func__

    def watched(cls, step_s, position, quaternion, **more):
        tuned_on.append(position)
        return tuned(cls, step_s, position, quaternion, **more)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PoseKalmanFilter, "tuned", classmethod(watched))
        answer = answers.answers_of(runs, 0)
    object.__setattr__(answer, "tuned_on", tuned_on)
    contacts = [answers.contacts_of(runs, answer, speed, 0) for speed in ("fast", "slow")]
    return planned, runs, answer, contacts


@pytest.fixture(scope="module")
def turned_base(cell):
    """What is left after the base has turned."""
    _, runs, answer, _ = cell
    changed = answers.ChangedCell(turned=answers.tilt_change(answers.TURNED_DEGREES))
    return answers.forces_left(runs, answer, changed, 0)


@pytest.mark.parametrize("kind", ["visits", "from rest"])
def test_motions_have_the_derivatives_they_say(kind, rng):
    path = (
        motions.Visits(rng.normal(size=(4, 6)), np.full(6, 2.0))
        if kind == "visits"
        else motions.FromRest(wrist_motion(5, 1.0))
    )
    t, h = np.linspace(0.05, path.duration_s - 0.05, 300), 1e-5
    _, v, a = path.at(t)
    ahead, behind = path.at(t + h), path.at(t - h)
    np.testing.assert_allclose((ahead[0] - behind[0]) / (2 * h), v, atol=1e-6)
    np.testing.assert_allclose((ahead[1] - behind[1]) / (2 * h), a, atol=2e-3)
    assert not path.at(np.linspace(0, 0.9, 5))[1].any()
    if kind == "visits":
        assert (np.abs(v) <= 2.0 + 1e-9).all()


def test_postures_in_turn_are_the_same_postures(kr60, rng):
    q = kr60.home + rng.uniform(-2.0, 2.0, size=(8, 6)) * [0, 0, 0, 2.5, 0.8, 2.5]
    found = PostureSet(q, kr60.forward_kinematics(q)[:, :3, :3], 1.0)
    ordered = motions._in_turn(found, kr60.limits)
    np.testing.assert_allclose(
        kr60.forward_kinematics(ordered.q)[:, :3, :3], ordered.R_base_flange, atol=1e-9
    )
    assert (ordered.q >= kr60.limits.q_min).all()
    assert (ordered.q <= kr60.limits.q_max).all()
    way = [np.abs(np.diff(x, axis=0)).max(axis=1).sum() for x in (ordered.q, q)]
    assert way[0] < way[1]


def test_objective_40_without_weight_does_not_know_the_size_of_a_small_motion(kr60):
    values = []
    for size in (1.0, 0.01, 0.001):
        series = wrist_motion(4, 1.0)
        small = replace(series, sine=size * series.sine, cosine=size * series.cosine)
        values.append([Liu2025(gravity=weight).evaluate(kr60, small) for weight in (False, True)])
    assert values[1][0] == pytest.approx(values[2][0], rel=0.05)
    assert values[2][1] > 50 * values[1][1] > values[0][1]


def test_the_papers_filter_is_tuned_on_an_earlier_run(cell):
    """No sample of the run that is weighed reaches the tuning of the causal filter."""
    _, runs, answer, _ = cell
    places = runs.robot.forward_kinematics(runs.fast.q)[:, :3, 3]
    np.testing.assert_allclose(answer.tuned_on[0], places, atol=1e-3)
    assert set(answer.same_signals) == set(answers.SAME_SIGNALS)


def test_both_methods_are_compared_on_the_same_signals(cell):
    found = [answers.tracked(cell[1], seed) for seed in range(2)]
    table = liu_sections.same_signals_table([cell[2]], found)
    assert [row[0] for row in table.rows] == [
        "proposed, causal motion", "ours, causal motion",
        "proposed, zero-phase motion", "ours, zero-phase motion", "ours, sample by sample",
    ]  # fmt: skip
    assert [row[1] for row in table.rows] == [1, 1, 1, 1, 2]
    mass = {row[0]: row[2] for row in table.rows}
    answer = cell[2]
    off = 1e3 * abs(answer.payloads["proposed"].unconstrained.mass - liu_world.LOAD.mass)
    assert mass["proposed, causal motion"] == pytest.approx(off)
    assert table.rows[-1][4].endswith(" of 20")


def test_both_stages_weigh_the_plate_and_method_2_leaves_the_tilt(cell):
    _, _, answer, (fast, _) = cell
    load = liu_world.LOAD
    for method in ("proposed", "ours"):
        assert answer.payloads[method].unconstrained.mass == pytest.approx(load.mass, abs=0.02)
    lean = np.linalg.norm(answer.payloads["ours"].gravity_base - liu_world.UPRIGHT)
    assert fast.forces["method_2"].force.mean() == pytest.approx(load.mass * lean, rel=0.05)
    assert fast.forces["ours"].force.mean() < 1.0


def test_the_papers_two_stages_are_those_of_the_recursion_in_one_piece(cell):
    """Eq. (34) and (35) row by row with P instead of its inverse give the same numbers."""
    _, _, answer, _ = cell
    Z, P_r = literal._rows(answer.causal, answer.static_tls), literal.constant_noise(answer.causal)
    v = np.concatenate([answer.static_tls.value[:4], np.zeros(6), [-1.0]])
    M = 1e-3 * np.eye(11)
    P = np.linalg.inv(M)
    w = v.copy()
    for rows in Z[:200]:
        M, v = literal.step(M, v, rows, P_r)
        for row in rows[:, None, :]:
            P = P - P @ row.T @ np.linalg.inv(1 + row @ P @ row.T) @ row @ P
        w = P @ P_r @ w
        w = -w / w[-1]
    np.testing.assert_allclose(v, w, rtol=1e-5, atol=1e-7)
    kept = answer.payloads["proposed"]
    np.testing.assert_array_equal(kept.drift, answer.static_tls.drift)
    np.testing.assert_array_equal(kept.inclination, answer.static_tls.value[10:])


def test_a_cell_with_faults_shows_them(cell, kr60):
    _, runs, _, _ = cell
    rng = np.random.default_rng(5)
    perfect, faulty = PERFECT.cell(rng), REAL.cell(rng)
    np.testing.assert_array_equal(perfect.wrench(kr60, runs.slow), runs.slow.wrench)
    off = np.abs(faulty.wrench(kr60, runs.slow) - runs.slow.wrench).mean(axis=0)
    assert (off > 1e-3).all()
    assert off[:3].max() < 0.05 * 400
    leaning = (
        replace(perfect, compliance=REAL.compliance).wrench(kr60, runs.slow) - runs.slow.wrench
    )
    assert 0.01 < np.abs(leaning).max() < 5.0
    stuck = _played(np.sin(np.linspace(0, 20, 500))[:, None] * np.ones(6), np.full(6, 0.1))
    assert np.abs(stuck).max() == pytest.approx(0.95, abs=1e-3)


def test_truth_of_table_2_is_the_reference_of_the_paper():
    from steelyard_papers.liu2025.printed import TABLE_2

    for name, (reference, *_) in TABLE_2.items():
        if reference is not None:
            assert liu_sections.true_value(name) == pytest.approx(reference, abs=1e-3)
    assert liu_sections.true_value("V") == pytest.approx(2.326)


def test_the_second_compensation_finds_a_zero_that_moved(cell):
    _, _, _, (_, slow) = cell
    before, after = slow.moved, slow.again
    assert after.zeroed_at
    later = after.t > after.zeroed_at[0]
    assert after.force[later].mean() < 0.3 * before.force[later].mean()


def test_weigh_wrist_runs_the_two_stages_as_printed(cell, monkeypatch):
    """`--method liu2025`: the numbers of the pipeline, and no interval that it does not have."""
    from importlib.metadata import EntryPoint

    from steelyard.io._wrist import SensorDescription
    from steelyard.workflow import _wrist

    text = (Path(__file__).parents[1] / "pyproject.toml").read_text()
    where = tomllib.loads(text)["project"]["entry-points"]["steelyard.wrist_methods"]["liu2025"]
    entry = EntryPoint("liu2025", where, "steelyard.wrist_methods")
    monkeypatch.setattr(_wrist, "entry_points", lambda group: [entry])
    _, runs, answer, _ = cell
    rng = np.random.default_rng(9)
    drift = answer.drift
    rest, moving = (
        liu_world.measured(runs.robot, run, drift, rng) for run in (runs.rest, runs.excitation)
    )
    sensor = SensorDescription(liu_world.SENSOR)
    about = {"robot": runs.robot, "sensor": sensor, "method": "liu2025"}
    found = _wrist.weigh_wrist(static=rest, dynamic=moving, **about)
    assert found.method == "liu2025"
    np.testing.assert_allclose(found.unconstrained.mass, liu_world.LOAD.mass, atol=0.03)
    np.testing.assert_allclose(found.inclination, liu_world.TILT, atol=2e-3)
    assert np.isinf(found.std).all()
    assert not found.verdict.ok
    assert not found.gives_intervals
    assert str(found).startswith("40.")
    assert found.knows_inertia
    with pytest.raises(InvalidSamples, match=r"'liu2025' takes no `level`"):
        _wrist.weigh_wrist(static=rest, dynamic=moving, level=True, **about)
    with pytest.raises(InvalidSamples, match=r"'liu2025' needs postures at rest and a motion"):
        _wrist.weigh_wrist(dynamic=moving, **about)
    with pytest.raises(UnknownName, match=r"no method 'liu2026'; there are ls, .*, liu2025$"):
        _wrist.weigh_wrist(dynamic=moving, **(about | {"method": "liu2026"}))


def test_causes_of_the_errors_of_method_1_do_what_mechanics_says(cell):
    """A tilt leaves the weight times its angle and no error of the mass; a zero spoils the mass."""
    _, runs, answer, _ = cell
    case = method_1_rows.MethodOne(runs, [answer])
    found = {degrees: case.turned(degrees) for degrees in (0.0, 8.0)}
    (mass,), (force,) = (found[8.0][name] for name in ("m", "mean force"))
    assert mass == pytest.approx(found[0.0]["m"][0], abs=1e-3)
    assert force == pytest.approx(2 * 40.173 * 9.81 * np.sin(np.radians(4.0)), abs=0.5)
    by_zero = [case.moved_zero(size)["m"][0] - mass for size in (-10.0, 10.0)]
    assert np.abs(by_zero).min() > 0.05
    still, moving = (case.moving(share) for share in (0.0, 1.0))
    assert still["m"][0] == pytest.approx(mass, abs=0.03)
    own = answer.payloads["method_1_moving"].unconstrained.mass
    assert moving["m"][0] == pytest.approx(own, abs=0.02 * own)


def test_a_base_that_turned_leaves_the_forces_of_table_3(cell, turned_base):
    """8.36, 8.33 N and 21.46, 21.41 N, as constant as before; statics alone give the means."""
    left = turned_base
    printed = {"proposed": ([8.36, 8.33], 0.4), "method_2": ([21.46, 21.41], 0.6)}
    for method, (values, allowed) in printed.items():
        start, mean, deviation = liu_sections.force_numbers(left.forces[method])[:3]
        assert [start, mean] == pytest.approx(values, abs=allowed)
        as_identified = cell[3][0].forces[method].force.std()
        assert deviation < as_identified + 0.3
    weight = 40.173 * 9.81
    tilt = np.hypot(1.824, 2.326)
    turned = np.hypot(tilt + 1.21 * np.cos(np.radians(94)), 1.21 * np.sin(np.radians(94)))
    expected = [2 * weight * np.sin(np.radians(x) / 2) for x in (1.21, turned)]
    assert expected == pytest.approx([8.33, 21.41], abs=0.1)


def test_a_base_that_turned_a_little_more_leaves_the_force_at_low_speed(cell):
    """8.60 N: the weight times the angle, by statics alone."""
    _, runs, answer, _ = cell
    changed = answers.ChangedCell(turned=answers.tilt_change(answers.TURNED_SLOW_DEGREES))
    left = answers.forces_left(runs, answer, changed, 0, speed="slow")
    assert left.forces["proposed"].force.mean() == pytest.approx(8.60, abs=0.15)
    by_statics = 2 * 40.173 * 9.81 * np.sin(np.radians(answers.TURNED_SLOW_DEGREES) / 2)
    assert by_statics == pytest.approx(8.60, abs=0.01)


def test_a_zero_that_moved_does_not_leave_a_force_of_constant_size(cell):
    """The proposed method would leave 8.3 N of it, but Method 2 no constant force."""
    _, runs, answer, _ = cell
    zero = 8.3 * np.array([2.0, -2.0, 1.0, 0.0, 0.0, 0.0]) / 3
    left = answers.forces_left(runs, answer, answers.ChangedCell(zero=zero), 0)
    assert left.forces["proposed"].force.mean() == pytest.approx(8.3, abs=0.4)
    assert left.forces["method_2"].force.std() > cell[3][0].forces["method_2"].force.std() + 1.0


def test_the_second_compensation_is_no_cure_for_a_base_that_turned(turned_base):
    left = turned_base
    later = left.again.force[left.again.t > left.again.zeroed_at[0]]
    assert later.max() > 6.0
    assert later.max() > 3 * left.forces["proposed"].force.std()


def test_sections_of_liu2025_are_whole(cell, kr60, turned_base):
    planned, runs, answer, (fast, slow) = cell
    noisy = {"ls": (0.5, 4e-3), "tls": (0.6, 4e-3), "rrtls": (0.3, 1e-3), "ml": (0.1, 1e-4)}
    cells = {name: [(answer, slow)] for name in (PERFECT.name, SLIGHT.name, REAL.name)}
    turned = [turned_base]
    costs = cell_sections.cost_table({"TLS": 1e-2, "RTLS": 4e-5, "RRTLS": 1e-5})
    made = [
        liu2025.workspace_section(kr60, planned),
        liu_sections.payload_section([answer], [answers.tracked(runs, 0)]),
        liu_sections.drift_section([answer]),
        liu_sections.estimator_section(noisy, 1, costs),
        liu_sections.contact_section([fast], [slow]),
        liu_sections.turned_section([fast], turned),
        liu_sections.what_is_missing(),
        cell_sections.cell_section(cells),
        *opening("liu2025", liu2025._claims(cells, turned), "nothing")[1][:1],
    ]
    for section in made:
        require_whole(section)
    names = [claim.what for claim in liu2025._claims(cells, turned)]
    high = liu2025._high_speed_claims([fast], turned)
    opening("liu2025", high, "nothing")  # refuses rows that `--explain` does not know
    assert {claim.cells[7] for claim in high} == {"a perfect cell"}
    names += [claim.what for claim in high]
    assert len(names) == len(set(names)) == 15
    assert tables(made[4])[0].rows[1][2] == 67.34
    assert len(liu2025._findings(planned, cells, noisy)) == 4


@pytest.mark.parametrize(
    ("value", "spread", "words"),
    [(3.52768, 0.0148, "3.528 ± 0.015"), (121.6, 23.0, "122 ± 23"), (0.5, np.inf, "0.5 ± inf")],
)
def test_a_number_has_the_digits_of_its_spread(value, spread, words):
    assert with_spread(value, spread) == words
