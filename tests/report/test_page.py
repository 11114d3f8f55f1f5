"""Pages as data and as one file: their content, escaped text, preserved peaks."""

import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest

from report_pages import EVIL, LOAD, PAGES, everything_page, payload, weighed, wrench_parts
from steelyard.drawing import Curve, Panel, Plot, Scene
from steelyard.errors import InvalidSamples, UnreadableFile
from steelyard.excitation import Cone, OrientationWorkspace, Sector
from steelyard.identification import identify
from steelyard.inertia import PARAMETER_NAMES, InertialParameters
from steelyard.payload._views import body_plot, com_plot
from steelyard.recording import Samples
from steelyard.report import Page, Section, Table
from steelyard.report._motion import orientation_plot
from steelyard.report._payload import payload_page, wrench_page
from steelyard.report._pieces import autocorrelation_plot, relative_std_plot
from steelyard.verdict import Doubt, DoubtKind, Verdict


class Elements(HTMLParser):
    """What a browser would see: tags with attributes, and the text outside scripts."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.words, self._inside = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        if tag in ("script", "style"):
            self._inside.append(tag)

    def handle_endtag(self, tag):
        if tag in ("script", "style"):
            self._inside.pop()

    def handle_data(self, data):
        if not self._inside and data.strip():
            self.words.append(data.strip().replace("\u00a0", " "))


def test_a_percentage_is_never_broken_into_two_lines():
    page = Page("Small", ["known to 95 %"], [Section("s", (), [Table("", ("± (95 %)",), [])])])
    assert "known to 95\u00a0%" in page.html()
    assert "± (95\u00a0%)" in page.html()


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_one_small_file_that_asks_for_nothing(name, tmp_path):
    path = tmp_path / "page.html"
    PAGES[name]().write(path)
    assert [p.name for p in path.parent.iterdir()] == ["page.html"]
    assert path.stat().st_size < 6e6
    text = path.read_text(encoding="utf-8")
    seen = Elements(text)
    assert not [tag for tag, _ in seen.tags if tag in ("link", "img", "iframe", "base", "object")]
    assert not [a for _, a in seen.tags if {"src", "onerror", "onload", "onclick"} & set(a)]
    assert all(a["href"].startswith("#") for tag, a in seen.tags if tag == "a")
    assert len([1 for tag, _ in seen.tags if tag == "script"]) == 6
    assert text.count('id="library"') == 1


def test_the_answer_comes_first_and_the_settings_last():
    page = payload()
    words = Elements(page.html()).words
    assert words.index(page.answer[0]) < min(
        words.index(section.title) for section in page.sections
    )
    assert words.index(page.answer[0]) <= 5
    state, headline = page.badge
    assert words[words.index(page.answer[0]) - 1] == headline
    assert f'class="badge {state.replace(" ", "-")}"' in page.html()
    assert words.index("0.0") > max(len(words) - 10, 0)
    said = re.fullmatch(
        r"The payload weighs ([\d.]+) ± ([\d.]+) kg \(95 % interval\)\.", page.answer[0]
    )
    mass, half = said.groups()
    assert float(mass) == pytest.approx(LOAD.mass, abs=2 * float(half))


def test_words_stay_words_wherever_they_stand():
    page = everything_page()
    text = page.html()
    seen = Elements(text)
    assert seen.words.count(EVIL) >= 8
    assert "window.evil" in text
    assert "<script>window.evil" not in text
    assert "<img" not in text
    figures = json.loads(re.search(r'id="figures">(.*?)</script>', text, re.DOTALL).group(1))
    labels = [figures[0]["layout"]["yaxis"]["title"]["text"], *figures[1]["data"][0]["x"]]
    assert all("<" not in label and "&lt;script" in label for label in labels)


def test_facts_are_json_and_hold_the_numbers_of_the_page():
    for make in PAGES.values():
        page = make()
        facts = page.to_dict()
        assert json.loads(json.dumps(facts, allow_nan=False)) == facts
        assert facts["title"] == page.title
        assert facts["answer"] == list(page.answer)
        assert facts["doubts"] == list(page.doubts)
        assert facts["settings"] == dict(page.settings)
        assert [s["title"] for s in facts["sections"]] == [s.title for s in page.sections]
        for fact, section in zip(facts["sections"], page.sections, strict=True):
            assert fact["text"] == list(section.text)
            for drawn, part in zip(fact["parts"], section.parts, strict=True):
                assert_same(drawn, part)


def assert_same(fact, part):
    if isinstance(part, Table):
        assert (fact["table"], fact["head"], fact["note"]) == (
            part.caption,
            list(part.head),
            part.note,
        )
        for cells, row in zip(fact["rows"], part.rows, strict=True):
            for a, b in zip(cells, row, strict=True):
                assert a == (str(b) if isinstance(b, float) and not np.isfinite(b) else b)
        return
    if isinstance(part, Scene):
        assert fact == {"scene": part.caption, "legend": dict(part.legend)}
        return
    assert fact["plot"] == part.caption
    for shown, panel in zip(fact["panels"], part.panels, strict=True):
        assert (shown["title"], shown["x"], shown["y"]) == (panel.title, panel.x, panel.y_label)
        assert shown["marks"] == [list(mark) for mark in panel.marks]
        lines = [curve for curve in panel.curves if isinstance(curve, Curve)]
        drawn = [c for c in shown["curves"] if c["name"] in {line.name for line in lines}]
        assert [c["name"] for c in drawn] == [line.name for line in lines]
        for c, line in zip(drawn, lines, strict=True):
            y = np.array([value for value in c["y"] if value is not None])
            if y.size:
                close = 5.1e-5 * np.nanmax(np.abs(line.y))  # five digits
                assert y.max() == pytest.approx(np.nanmax(line.y), abs=close)
                assert y.min() == pytest.approx(np.nanmin(line.y), abs=close)


def test_many_curves_share_the_space_of_a_page():
    t = np.linspace(0, 10, 20_000)
    panels = [
        Panel(str(i), "t", "y", [Curve(str(k), t, np.sin(k * t)) for k in range(20)])
        for i in range(20)
    ]
    text = Page("many", ["x"], [Section("s", (), [Plot("p", panels)])]).html()
    assert len(text) < 6e6


def test_a_value_and_its_spread_stay_in_one_line():
    """On a phone short texts may break, a value and its spread not."""
    cells = ("-40.174 ± 0.0028", "1.2e-05 +- 3e-07", "a value ± a spread", "4 of 4")
    table = Table("T", ("a", "b", "c", "d"), [cells])
    text = Page("t", ["a"], [Section("s", [], [table])]).html()
    for cell, style in zip(cells, ("s v", "s v", "s", "s"), strict=True):
        shown = re.escape(cell.replace("+-", "±"))
        assert re.search(rf'<td class="{style}">{shown}</td>', text), cell


def test_a_page_without_plots_carries_no_library():
    assert len(Page("words", ["yes"], [Section("s", ["only words"])]).html()) < 20_000


@pytest.mark.parametrize(
    ("cell", "words"),
    [
        (2.0, "2.000"),
        (0.0, "0"),
        (3.52561, "3.526"),
        (123.456, "123.5"),
        (12345.6, "12346"),
        (-0.00012346, "-0.0001235"),
        (1.5e-7, "1.500e-07"),
        (7, "7"),
        (np.int64(12), "12"),
        (np.float64(0.25), "0.2500"),
        (None, ""),
        ("word", "word"),
        (np.inf, "∞"),
        (np.nan, "–"),
        (True, "yes"),
        (1234.0, "1234"),
    ],
)
def test_cells_as_words(cell, words):
    table = Table("one cell", ("a", "b"), [["first", cell]])
    seen = Elements(Page("cells", [], [Section("s", (), [table])]).html()).words
    assert seen[seen.index("first") + 1 :] == ([words] if words else [])


@pytest.mark.parametrize(
    ("value", "half", "words"),
    [
        (2.50004, 0.00212, ["2.5000", "0.0021"]),
        (-30.12, 2.44, ["-30.1", "2.4"]),
        (-0.00001, 0.0031, ["0.0000", "0.0031"]),
        (1.25, 37.0, ["1", "37"]),
        (1234.0, 3700.0, ["1234", "3700"]),
        (1.5, np.inf, ["1.500", "∞"]),
        (1.5, None, ["1.500"]),
        (3.2e-9, 1.1e-10, ["3.200e-09", "1.100e-10"]),
    ],
)
def test_digits_go_by_the_interval(value, half, words):
    table = Table("one row", ("a", "b", "± (95 %)"), [["first", value, half]])
    page = Page("digits", [], [Section("s", (), [table])])
    seen = Elements(page.html()).words
    assert seen[seen.index("first") + 1 :] == words
    assert (
        page.to_dict()["sections"][0]["parts"][0]["rows"][0][1] == value
    )  # programs get all digits


@pytest.mark.parametrize(
    ("value", "half", "words"),
    [
        (6.00012, 0.00041, "6.00012 ± 0.00041 kg"),
        (3.5273, 0.0102, "3.527 ± 0.010 kg"),
        (1234.5, 37.0, "1234 ± 37 kg"),
        (2.5, 0.0, "2.5000 ± 0.0000 kg"),
    ],
)
def test_an_interval_is_never_rounded_away(value, half, words):
    page = _page_of_a_mass(value, half)
    assert page.answer[0] == f"The payload weighs {words} (95 % interval)."


def test_a_page_states_no_mass_that_is_not_known():
    page = _page_of_a_mass(2.0, np.inf)
    assert not any("weighs" in sentence for sentence in page.answer)
    assert page.badge[1] == "DO NOT USE: the mass is not known."
    (table, *others) = page.sections[0].parts
    assert isinstance(table, Table)
    assert not others, "a body of an unknown mass has no picture"


def _page_of_a_mass(value, half):
    model, found, loaded = weighed()
    scale = np.ones(10)
    scale[0] = half / 1.96 / found.std[0]
    covariance = found.covariance * np.outer(scale, scale)
    body = InertialParameters.from_com(value, LOAD.com, LOAD.inertia_com)
    return payload_page(model, replace(found, body=body, covariance=covariance), loaded)


def test_autocorrelation_against_its_definition(rng):
    x = np.cumsum(rng.normal(size=(300, 2)), axis=0)
    (panel,) = autocorrelation_plot(x, 40.0, ("a", "b")).panels
    found = {curve.name: curve.y for curve in panel.curves if isinstance(curve, Curve)}
    centred = x - x.mean(axis=0)
    for j, name in enumerate("ab"):
        for lag in (0, 1, 7, 40):
            want = (centred[: len(x) - lag, j] * centred[lag:, j]).sum() / (
                centred[:, j] ** 2
            ).sum()
            assert found[name][lag] == pytest.approx(want, abs=1e-12)


def test_the_outline_of_a_body_is_that_of_its_own_ellipsoid(rng):
    axes = np.array([0.05, 0.09, 0.14])
    R = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    R *= np.sign(np.linalg.det(R))
    moments = 2.0 / 5 * (np.sum(axes**2) - axes**2)
    body = InertialParameters.from_com(2.0, [0.01, -0.02, 0.05], R @ np.diag(moments) @ R.T)
    points = rng.normal(size=(200_000, 3))
    surface = body.com + (points / np.linalg.norm(points, axis=1)[:, None] * axes) @ R.T
    panels = body_plot(body, np.diag(np.full(10, 1e-8))).panels
    for panel, (i, k) in zip(panels, ((0, 1), (0, 2), (1, 2)), strict=True):
        ellipse = next(c for c in panel.curves if c.name == "inertia ellipsoid")
        for axis, line in ((i, ellipse.x), (k, ellipse.y)):
            assert np.max(line) == pytest.approx(1e3 * surface[:, axis].max(), rel=2e-3)
            assert np.min(line) == pytest.approx(1e3 * surface[:, axis].min(), rel=2e-3)


def test_the_region_of_the_centre_of_mass_holds_95_percent(rng):
    _, found, _ = weighed()
    slope = np.column_stack([-found.body.com, np.eye(3)]) / found.body.mass
    spread = 1e6 * slope @ found.covariance[:4, :4] @ slope.T
    np.testing.assert_allclose(np.sqrt(np.diag(spread)), 1e3 * found.com_std, rtol=1e-9)
    panel = com_plot(found.body, found.covariance).panels[0]
    region = next(curve for curve in panel.curves if curve.name == "95 % region")
    draws = rng.multivariate_normal(np.zeros(2), spread[:2, :2], 20_000)
    around = np.array([region.x, region.y]) - 1e3 * found.body.com[:2, None]
    W = np.linalg.inv(spread[:2, :2])
    edge = np.einsum("in,ij,jn->n", around, W, around)
    assert np.ptp(edge) < 1e-6 * edge.mean()
    assert np.mean(np.einsum("ni,ij,nj->n", draws, W, draws) < edge.min() + 1e-9) == pytest.approx(
        0.95, abs=0.01
    )


def test_the_residual_of_a_wrench_is_measured_less_predicted():
    static, moving, found = wrench_parts()
    (section,) = (
        section
        for section in wrench_page(found, moving, static).sections
        if section.title == "Force and torque in motion"
    )
    both, left, _ = section.parts
    assert left.caption == "Measured less predicted."
    for panel, rest in zip(both.panels, left.panels, strict=True):
        measured, predicted = (curve.y for curve in panel.curves)
        (residual,) = (curve.y for curve in rest.curves)
        np.testing.assert_allclose(residual, measured - predicted, atol=1e-12)
        assert np.std(residual) < 0.5 * np.std(measured)


def test_an_invisible_region_is_not_in_the_legend():
    body = InertialParameters.from_com(2.0, [0.1, 0.0, 0.05], np.diag([0.01, 0.01, 0.01]))
    for std, seen in ((1e-5, False), (1e-2, True)):
        plot = body_plot(body, np.eye(10) * std**2)
        names = {curve.name for panel in plot.panels for curve in panel.curves}
        assert ("95 % region" in names) == seen
        assert ("too small to be seen" in plot.caption) == (not seen)
    long = np.full(10, 1e-5)
    long[1] = 1e-2  # a needle along x
    assert "too small to be seen" not in body_plot(body, np.diag(long**2)).caption


def test_what_is_not_known_is_said_not_drawn():
    spread = np.diag([1e-4, 1e-6, 1e-6, np.inf, *[np.inf] * 6])
    plot = body_plot(LOAD, spread)
    drawn = [{c.name for c in panel.curves} for panel in plot.panels]
    assert ["95 % region" in names for names in drawn] == [True, False, False]
    assert not any("inertia ellipsoid" in names for names in drawn)
    assert "No region is drawn where" in plot.caption
    assert "No ellipsoid is drawn" in plot.caption
    assert "homogeneous" not in plot.caption
    assert "homogeneous ellipsoid" in body_plot(LOAD, 1e-8 * np.eye(10)).caption
    bars = relative_std_plot("Bars.", PARAMETER_NAMES, np.sqrt(np.diag(spread)))
    assert "do not determine mz, Ixx" in bars.caption
    assert sum(len(curve.x) for curve in bars.panels[0].curves) == 3


def test_a_page_has_the_sign_of_plus_and_minus():
    table = Table("1 +- 2", ("why",), [["3 +- 4 kg"]])
    page = Page("x", ["mean 5 +- 6 kg"], [Section("", (), [table])], doubts=["7 +- 8"]).html()
    for words in ("1 ± 2", "3 ± 4 kg", "mean 5 ± 6 kg", "7 ± 8"):
        assert words in page


def test_error_bars_are_mentioned_where_postures_have_some():
    static, _, _ = wrench_parts()
    alone = replace(static.postures, variance=np.zeros_like(static.postures.variance))
    for postures, expected in ((static.postures, True), (alone, False)):
        page = wrench_page(static.payload(), None, replace(static, postures=postures))
        assert ("error bars" in str(page.to_dict())) == expected


def test_a_guess_at_the_shape_is_called_one():
    tight, loose = np.full(10, 1e-10), np.full(10, 1e-3)
    assert "uncertain" not in body_plot(LOAD, np.diag(tight)).caption
    assert "uncertain" in body_plot(LOAD, np.diag(loose)).caption


def test_a_page_that_cannot_be_written_leaves_nothing(tmp_path):
    with pytest.raises(
        UnreadableFile, match=r"cannot write .*page\.html: there is no folder .*none"
    ):
        Page("x", [], []).write(tmp_path / "none" / "page.html")
    (tmp_path / "taken").mkdir()
    with pytest.raises(UnreadableFile, match=r"cannot write .*taken: it is a folder"):
        Page("x", [], []).write(tmp_path / "taken")
    assert [p.name for p in tmp_path.iterdir()] == ["taken"]
    Page("old", [], []).write(tmp_path / "page.html")
    Page("new", [], []).write(tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text()
    assert "<title>new" in text
    assert "<title>old" not in text


def test_nothing_is_predicted_where_a_joint_stands_still_and_its_sign_is_noise():
    """The demo's picture had spikes there: the sign of a speed that is only noise."""
    model, found, loaded = weighed()
    still = np.zeros((200, loaded.n))
    noise = 1e-4 * np.random.default_rng(5).normal(size=still.shape)
    q, a = np.tile(loaded.q[:1], (200, 1)), still
    v = np.where(np.arange(6) == 5, 0.5, noise)
    at_rest = Samples(
        q, v, a, model.torque(q, v, a), 100.0, loaded.joint_names, "measured", np.abs(v) > 0.01
    )
    torque = payload_page(model, found, at_rest).picture[-1]
    assert "no prediction for joints at rest" in torque.caption
    for panel in torque.panels:
        drawn = {curve.name: np.asarray(curve.y) for curve in panel.curves}
        assert np.isfinite(drawn["measured"]).all()
        shown = panel.title == "wrist_3_joint"
        for name in ("with payload", "empty arm"):
            assert (np.isfinite(drawn[name]) == shown).all()
    smooth = identify(model.robot, loaded, friction="smooth")
    torque = payload_page(smooth, found, at_rest).picture[-1]
    assert "at rest" not in torque.caption
    assert all(np.isfinite(curve.y).all() for panel in torque.panels for curve in panel.curves)


def test_each_doubt_is_a_paragraph_of_its_own():
    model, found, loaded = weighed()
    words = ("it was touched: weigh again", "it was late; wait")
    doubts = tuple(Doubt(DoubtKind.RECORDING, each) for each in words)
    doubted = replace(found, verdict=Verdict("all were excited", doubts))
    page = payload_page(model, doubted, loaded)
    sentences = ["It was touched: weigh again.", "It was late. Wait.", "All were excited."]
    assert page.doubts == ["Do not use this:", *sentences]


def test_a_notebook_shows_a_payload_as_a_table_and_a_picture(tmp_path):
    import polars

    _, found, _ = weighed()
    assert '<img alt="The payload on the flange' in found._repr_html_()
    assert repr(found).startswith("<Payload: ")
    assert "\n" not in repr(found)
    for frame in (polars.DataFrame(found), found.to_dataframe("polars")):
        assert frame.row(0, named=True)["value"] == found.mass
    assert found.to_dataframe().set_index("name").loc["mass", "value"] == found.mass
    assert frame["unit"].to_list() == ["kg", *["mm"] * 3, *["kg m²"] * 12]
    about_com = frame["value"].to_list()[10:]
    inertia = found.inertia_com
    np.testing.assert_allclose(about_com[::5], [inertia[0, 0], inertia[2, 2]])
    empty = replace(found, body=InertialParameters.from_vector(np.zeros(10)))
    assert "<img" not in empty._repr_html_()
    assert found.plot()._repr_html_().count("<img") == 2
    found.plot().save(tmp_path / "payload.svg")
    assert (tmp_path / "payload.svg").read_text().count("mm]") >= 6
    with pytest.raises(
        InvalidSamples, match="the mass is not positive: there is no payload to draw"
    ):
        empty.plot()


def test_the_feasible_workspace_is_shaded_where_an_axis_may_point(rng):
    cone = Cone("x", np.array([-0.6, 0.0, 0.8]), 0.7)
    workspace = OrientationWorkspace((cone, Sector("x", (0.3, 1.2), (-np.pi, np.pi))))
    axes = rng.normal(size=(2000, 3))
    axes /= np.linalg.norm(axes, axis=1)[:, None]
    margin = np.minimum(*(part.margin(axes) for part in workspace.regions))
    x, y, _ = orientation_plot(np.tile(np.eye(3), (5, 1, 1)), workspace).panels
    bands = [part for part in x.curves if part.name == "feasible"]
    phi = np.round(np.degrees(np.arctan2(axes[:, 1], axes[:, 0]))).astype(int) + 180
    theta = np.degrees(np.arccos(axes[:, 2]))
    shaded = np.any(
        [(band.low[phi] <= theta) & (theta <= band.high[phi]) for band in bands], axis=0
    )
    sure = np.abs(margin) > np.radians(1.5)
    assert 0.02 < shaded.mean() < 0.5
    np.testing.assert_array_equal(shaded[sure], margin[sure] > 0)
    (everywhere,) = [part for part in y.curves if part.name == "feasible"]
    assert (everywhere.low == 0).all()
    assert (everywhere.high == 180).all()
