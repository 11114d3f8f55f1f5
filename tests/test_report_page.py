"""Pages as data and as one file: what stands in them, that words stay words, that no peak is lost."""

import json
import re
from html.parser import HTMLParser

import numpy as np
import pytest

from report_pages import EVIL, LOAD, PAGES, everything_page, payload, weighed
from steelyard.errors import InvalidSamples, UnreadableFile
from steelyard.inertia import PARAMETER_NAMES, InertialParameters
from steelyard.report.body import body_plot, com_covariance, outline
from steelyard.report.drawing import colours_of, decimated, panel_figure, rounded, thinned
from steelyard.report.html import page_facts, page_html, shown, write_page
from steelyard.report.page import Band, Curve, Page, Panel, Plot, Section, Table
from steelyard.report.pieces import autocorrelation, convergence_plot, relative_std_plot, with_interval


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
            self.words.append(data.strip())


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_one_small_file_that_asks_for_nothing(name, tmp_path):
    path = tmp_path / "page.html"
    write_page(PAGES[name](), path)
    assert [p.name for p in path.parent.iterdir()] == ["page.html"]
    assert path.stat().st_size < 6e6
    text = path.read_text(encoding="utf-8")
    seen = Elements(text)
    assert not [tag for tag, _ in seen.tags if tag in ("link", "img", "iframe", "base", "object")]
    assert not [a for _, a in seen.tags if {"src", "onerror", "onload", "onclick"} & set(a)]
    assert all(a["href"].startswith("#") for tag, a in seen.tags if tag == "a")
    assert len([1 for tag, _ in seen.tags if tag == "script"]) == 4
    assert text.count('id="library"') == 1


def test_the_answer_comes_first_and_the_settings_last():
    page = payload()
    words = Elements(page_html(page)).words
    assert words.index(page.answer[0]) < min(words.index(section.title) for section in page.sections)
    assert words.index(page.answer[0]) <= 4
    assert words.index("0.0") > max(len(words) - 10, 0)
    told = re.fullmatch(r"The payload weighs ([\d.]+) ± ([\d.]+) kg \(95 % interval\)\.", page.answer[0])
    mass, half = told.groups()
    assert float(mass) == pytest.approx(LOAD.mass, abs=2 * float(half))


def test_words_stay_words_wherever_they_stand():
    page = everything_page()
    text = page_html(page)
    seen = Elements(text)
    assert seen.words.count(EVIL) >= 8
    assert "window.evil" in text
    assert "<script>window.evil" not in text
    assert "<img" not in text
    figures = json.loads(re.search(r'id="figures">(.*?)</script>', text, re.DOTALL).group(1))
    labels = [figures[0]["layout"]["yaxis"]["title"]["text"], *figures[1]["data"][0]["x"]]
    assert all("<" not in label and "&lt;script" in label for label in labels)


def test_decimation_keeps_the_extremes_of_every_stretch(rng):
    t = np.arange(100_000) / 500
    y = rng.normal(size=t.size)
    y[[37, 54_321]] = 50, -70
    kept = decimated(t, y, 1500)
    assert len(kept) <= 1500
    assert {0, 37, 54_321, len(t) - 1} <= set(kept)
    assert (np.diff(kept) > 0).all()
    bucket = -(-len(t) // 749)
    for start in range(0, len(t), bucket):  # what is drawn near a stretch reaches beyond all of it
        near = y[kept[(kept >= start - bucket) & (kept < start + 2 * bucket)]]
        assert near.min() <= y[start : start + bucket].min()
        assert near.max() >= y[start : start + bucket].max()


def test_gaps_stay_gaps_and_short_or_turning_curves_are_kept(rng):
    y = rng.normal(size=10_000)
    y[5000:5003] = np.nan
    assert np.isnan(y[decimated(np.arange(10_000), y, 200)]).any()
    np.testing.assert_array_equal(decimated([3.0, 1.0, 2.0], [1.0, 2.0, 3.0], 10), [0, 1, 2])
    angle = np.linspace(0, 2 * np.pi, 9001)
    kept = decimated(np.cos(angle), np.sin(angle), 300)
    assert len(kept) <= 300
    assert np.ptp(np.cos(angle[kept])) == pytest.approx(2, abs=1e-6)
    assert np.ptp(np.sin(angle[kept])) == pytest.approx(2, abs=1e-6)


def test_a_cloud_is_thinned_evenly_and_keeps_its_outermost_dots(rng):
    x, y = rng.normal(size=(2, 20_000))
    kept = thinned(x, y, 400)
    assert len(kept) <= 400
    assert {x.argmin(), x.argmax(), y.argmin(), y.argmax()} <= set(kept)
    assert y[kept].std() == pytest.approx(1, abs=0.15)  # the extremes of buckets would have about 2


def test_numbers_are_short_and_close(rng):
    x = 1000 + rng.normal(size=500)
    short = np.array(rounded(x))
    assert np.abs(short - x).max() < 1e-5 * np.ptp(x)
    assert max(len(str(value)) for value in short) <= 11
    assert rounded([1.23456789, 1.23456789]) == [1.2346, 1.2346]
    assert rounded([1e-9 * np.pi, 1e9 * np.pi], relative=True) == [3.1416e-9, 3.1416e9]
    assert rounded([1.0, np.nan, np.inf, 3.0]) == [1.0, None, None, 3.0]


def test_facts_are_json_and_hold_the_numbers_of_the_page():
    for make in PAGES.values():
        page = make()
        facts = page_facts(page)
        assert json.loads(json.dumps(facts, allow_nan=False)) == facts
        assert facts["title"] == page.title
        assert facts["answer"] == list(page.answer)
        assert facts["doubts"] == list(page.doubts)
        assert facts["settings"] == dict(page.settings)
        assert [s["title"] for s in facts["sections"]] == [s.title for s in page.sections]
        for told, section in zip(facts["sections"], page.sections, strict=True):
            assert told["text"] == list(section.text)
            for fact, part in zip(told["parts"], section.parts, strict=True):
                assert_same(fact, part)


def assert_same(fact, part):
    if isinstance(part, Table):
        assert (fact["table"], fact["head"], fact["note"]) == (part.caption, list(part.head), part.note)
        for told, row in zip(fact["rows"], part.rows, strict=True):
            for a, b in zip(told, row, strict=True):
                assert a == (str(b) if isinstance(b, float) and not np.isfinite(b) else b)
        return
    assert fact["plot"] == part.caption
    for told, panel in zip(fact["panels"], part.panels, strict=True):
        assert (told["title"], told["x"], told["y"]) == (panel.title, panel.x, panel.y)
        assert told["marks"] == [list(mark) for mark in panel.marks]
        lines = [curve for curve in panel.curves if isinstance(curve, Curve)]
        drawn = [c for c in told["curves"] if c["name"] in {line.name for line in lines}]
        assert [c["name"] for c in drawn] == [line.name for line in lines]
        for c, line in zip(drawn, lines, strict=True):
            y = np.array([value for value in c["y"] if value is not None])
            if y.size:
                close = 5.1e-5 * np.nanmax(np.abs(line.y))  # five digits
                assert y.max() == pytest.approx(np.nanmax(line.y), abs=close)
                assert y.min() == pytest.approx(np.nanmin(line.y), abs=close)


def test_many_curves_share_the_room_of_a_page():
    t = np.linspace(0, 10, 20_000)
    panels = [
        Panel(str(i), "t", "y", [Curve(str(k), t, np.sin(k * t)) for k in range(20)]) for i in range(20)
    ]
    text = page_html(Page("many", ["x"], [Section("s", (), [Plot("p", panels)])]))
    assert len(text) < 6e6


def test_a_page_without_plots_carries_no_library():
    assert len(page_html(Page("words", ["yes"], [Section("s", ["only words"])]))) < 20_000


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
    assert shown(cell) == words


@pytest.mark.parametrize(
    ("value", "half", "words"),
    [
        (6.00012, 0.00041, "6.00012 ± 0.00041 kg"),
        (3.5273, 0.0102, "3.527 ± 0.010 kg"),
        (1234.5, 37.0, "1234 ± 37 kg"),
        (2.0, np.inf, "2 kg (not known)"),
        (2.5, 0.0, "2.5000 ± 0.0000 kg"),
    ],
)
def test_an_interval_is_never_rounded_away(value, half, words):
    assert with_interval(value, half, "kg") == words


def test_colours_follow_names_and_bands_their_curves():
    t = np.arange(3.0)
    one = Panel("a", "", "", [Curve("measured", t, t), Band("95 %", t, t, t), Curve("ours", t, t)])
    two = Panel("b", "", "", [Curve("ours", t, t), Curve("theirs", t, t), Curve("truth", t, t)])
    colours = colours_of(Plot("", [one, two]))
    assert colours["95 %"] == colours["ours"]
    assert len({colours[name] for name in ("measured", "ours", "theirs", "truth")}) == 4
    assert panel_figure(two, colours, 10)["data"][0]["line"]["color"] == colours["ours"]
    assert colours_of(Plot("", [Panel("", "", "", [Curve("x", t, t, colour="#123456")])])) == {"x": "#123456"}


def test_autocorrelation_against_its_definition(rng):
    x = np.cumsum(rng.normal(size=(300, 2)), axis=0)
    found = autocorrelation(x, 40)
    centred = x - x.mean(axis=0)
    for lag in (0, 1, 7, 40):
        want = (centred[: len(x) - lag] * centred[lag:]).sum(axis=0) / (centred**2).sum(axis=0)
        np.testing.assert_allclose(found[lag], want, atol=1e-12)


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
    spread = com_covariance(found.body, found.covariance)
    np.testing.assert_allclose(np.sqrt(np.diag(spread)), found.com_std, rtol=1e-9)
    draws = rng.multivariate_normal(np.zeros(2), 1e6 * spread[:2, :2], 20_000)
    x, y = outline(1e6 * spread[:2, :2], np.zeros(2), 2.4477)
    W = np.linalg.inv(1e6 * spread[:2, :2])
    edge = np.einsum("in,ij,jn->n", [x, y], W, [x, y])
    assert np.mean(np.einsum("ni,ij,nj->n", draws, W, draws) < edge.min() + 1e-9) == pytest.approx(
        0.95, abs=0.01
    )


def test_what_is_not_known_is_said_not_drawn():
    spread = np.diag([1e-4, 1e-6, 1e-6, np.inf, *[np.inf] * 6])
    plot = body_plot(LOAD, spread)
    drawn = [{c.name for c in panel.curves} for panel in plot.panels]
    assert ["95 % region" in names for names in drawn] == [True, False, False]
    assert not any("inertia ellipsoid" in names for names in drawn)
    assert "not known" in plot.caption
    bars = relative_std_plot("Bars.", PARAMETER_NAMES, np.sqrt(np.diag(spread)))
    assert "say nothing about mz, Ixx" in bars.caption
    assert sum(len(curve.x) for curve in bars.panels[0].curves) == 3


def test_a_guess_at_the_shape_is_called_one():
    tight, loose = np.full(10, 1e-10), np.full(10, 1e-3)
    assert "guess" not in body_plot(LOAD, np.diag(tight)).caption
    assert "guess" in body_plot(LOAD, np.diag(loose)).caption


def test_convergence_is_cut_to_what_can_be_read():
    t = np.linspace(0, 10, 200)
    mass, std = 2 + 100 * np.exp(-3 * t), 50 * np.exp(-2 * t) + 0.01
    panel = convergence_plot(t, mass, std, truth=(2.0, (0, 0, 0))).panels[0]
    band, line, truth = panel.curves
    assert np.nanmax(line.y) < 20
    assert band.high.max() < 20
    assert line.y[-1] == mass[-1]
    np.testing.assert_allclose([band.low[-1], band.high[-1]], mass[-1] + np.array([-1.96, 1.96]) * std[-1])
    assert list(truth.y) == [2.0, 2.0]


def test_curves_of_unequal_length_are_refused():
    with pytest.raises(InvalidSamples, match=r"curve 'a': x and y need one length, got \[3, 2\]"):
        Curve("a", np.zeros(3), np.zeros(2))
    with pytest.raises(InvalidSamples, match="curve 'b'"):
        Band("b", np.zeros(3), np.zeros(3), np.zeros(2))


def test_a_page_that_cannot_be_written_leaves_nothing(tmp_path):
    with pytest.raises(UnreadableFile, match=r"cannot write .*page\.html: there is no folder .*none"):
        write_page(Page("x", [], []), tmp_path / "none" / "page.html")
    (tmp_path / "taken").mkdir()
    with pytest.raises(UnreadableFile, match="the page cannot be written"):
        write_page(Page("x", [], []), tmp_path / "taken")
    assert [p.name for p in tmp_path.iterdir()] == ["taken"]
    write_page(Page("old", [], []), tmp_path / "page.html")
    write_page(Page("new", [], []), tmp_path / "page.html")
    assert "new" in (tmp_path / "page.html").read_text()
