"""Plots as data, for pages, files and notebooks: peaks and gaps survive, colours by name."""

import importlib.util
import re
from dataclasses import replace

import numpy as np
import pytest

from report_pages import everything_page, identification
from steelyard.drawing import (
    Band,
    Curve,
    Panel,
    Plot,
    Solid,
    notebook_html,
    panel_figure,
    save_picture,
)
from steelyard.drawing._picture import Picture
from steelyard.errors import InvalidSamples, UnreadableFile


def drawn(part, most, **panel):
    """x and y of the first trace, as arrays."""
    plot = Plot("", [Panel("", "", "", [part], **panel)])
    (trace, *_) = panel_figure(plot.panels[0], plot.colours, most)["data"]
    return np.array(trace["x"], dtype=float), np.array(trace["y"], dtype=float)


def test_decimation_keeps_the_extremes_of_every_stretch(rng):
    t = np.arange(100_000) / 500
    y = rng.normal(size=t.size)
    y[[37, 54_321]] = 50, -70
    x, found = drawn(Curve("noise", t, y), 1500)
    assert len(x) <= 1500
    kept = np.round(x * 500).astype(int)
    assert {0, 37, 54_321, len(t) - 1} <= set(kept)
    assert (np.diff(kept) > 0).all()
    np.testing.assert_allclose(found, y[kept], atol=1e-3)
    bucket = -(-len(t) // 749)
    for start in range(0, len(t), bucket):  # what is drawn near a stretch reaches beyond all of it
        near = y[kept[(kept >= start - bucket) & (kept < start + 2 * bucket)]]
        assert near.min() <= y[start : start + bucket].min()
        assert near.max() >= y[start : start + bucket].max()


def test_gaps_stay_gaps_and_short_or_turning_curves_are_kept(rng):
    y = rng.normal(size=10_000)
    y[5000:5003] = np.nan
    assert np.isnan(drawn(Curve("gap", np.arange(10_000.0), y), 200)[1]).any()
    x, found = drawn(Curve("short", np.array([3.0, 1.0, 2.0]), np.array([1.0, 2.0, 3.0])), 10)
    np.testing.assert_array_equal(x, [3, 1, 2])
    np.testing.assert_array_equal(found, [1, 2, 3])
    angle = np.linspace(0, 2 * np.pi, 9001)
    x, found = drawn(Curve("circle", np.cos(angle), np.sin(angle)), 300)
    assert len(x) <= 300
    assert np.ptp(x) == pytest.approx(2, abs=1e-5)
    assert np.ptp(found) == pytest.approx(2, abs=1e-5)


def test_the_box_around_an_ellipsoid_holds_all_of_it(rng):
    half = rng.normal(size=(3, 3))
    centre = rng.normal(size=3)
    solid = Solid.ellipsoid("load", 0, centre, half @ half.T, colour="#000000")
    ways = rng.normal(size=(1000, 3))
    points = (half @ (ways / np.linalg.norm(ways, axis=1)[:, None]).T).T
    within = np.linalg.solve(solid.placement[:3, :3], points.T)
    corners = np.linalg.solve(solid.placement[:3, :3], (solid.box - centre).T)
    assert (np.abs(within).max(axis=1) <= corners.max(axis=1) + 1e-9).all()
    assert np.linalg.norm(solid.box - centre, axis=1).min() > np.linalg.norm(points, axis=1).max()


def test_a_band_is_not_filled_across_a_gap():
    t, low = np.arange(10.0), np.zeros(10)
    low[4:6] = np.nan
    plot = Plot("", [Panel("", "", "", [Band("b", t, low, low + 1)])])
    traces = panel_figure(plot.panels[0], plot.colours, 100)["data"]
    assert [trace["x"] for trace in traces] == [[0, 1, 2, 3]] * 2 + [[6, 7, 8, 9]] * 2
    assert [trace["y"][0] for trace in traces] == [0, 1, 0, 1]
    assert ["fill" in trace for trace in traces] == [False, True] * 2


def test_a_cloud_is_thinned_evenly_and_keeps_its_outermost_dots(rng):
    x, y = rng.normal(size=(2, 20_000))
    across, up = drawn(Curve("cloud", x, y, "dots"), 400)
    assert len(across) <= 250
    for values, kept in ((x, across), (y, up)):
        assert kept.min() == pytest.approx(values.min(), abs=1e-4)
        assert kept.max() == pytest.approx(values.max(), abs=1e-4)
    y[np.argmax(y) + np.arange(1, 3)] = np.nan
    y[7] = np.nan
    gap = drawn(Curve("cloud", x, y, "dots"), 400)[1]
    assert np.nanmax(gap) == pytest.approx(np.nanmax(y), abs=1e-4)
    assert np.nanmin(gap) == pytest.approx(np.nanmin(y), abs=1e-4)
    assert up.std() == pytest.approx(1, abs=0.15)  # the extremes of buckets would have about 2


def test_numbers_are_short_and_close(rng):
    y = 1000 + rng.normal(size=500)
    short = drawn(Curve("a", np.arange(500.0), y), 1000)[1]
    assert np.abs(short - y).max() < 1e-5 * np.ptp(y)
    assert max(len(str(value)) for value in short) <= 11
    assert list(drawn(Curve("a", np.arange(2.0), np.full(2, 1.23456789)), 9)[1]) == [1.2346, 1.2346]
    wide = Curve("a", np.arange(2.0), np.array([1e-9 * np.pi, 1e9 * np.pi]))
    assert list(drawn(wide, 9, log_y=True)[1]) == [3.1416e-9, 3.1416e9]
    plot = Plot(
        "", [Panel("", "", "", [Curve("a", np.arange(4.0), np.array([1.0, np.nan, np.inf, 3.0]))])]
    )
    assert panel_figure(plot.panels[0], plot.colours, 9)["data"][0]["y"] == [1.0, None, None, 3.0]


def test_colours_follow_names_and_bands_their_curves():
    t = np.arange(3.0)
    one = Panel("a", "", "", [Curve("measured", t, t), Band("95 %", t, t, t), Curve("ours", t, t)])
    two = Panel("b", "", "", [Curve("ours", t, t), Curve("theirs", t, t), Curve("truth", t, t)])
    colours = Plot("", [one, two]).colours
    assert colours["95 %"] == colours["ours"]
    assert len({colours[name] for name in ("measured", "ours", "theirs", "truth")}) == 4
    assert panel_figure(two, colours, 10)["data"][0]["line"]["color"] == colours["ours"]
    assert Plot("", [Panel("", "", "", [Curve("x", t, t, colour="#123456")])]).colours == {
        "x": "#123456"
    }


def test_one_legend_serves_all_panels_where_one_of_them_shows_everything():
    t = np.arange(3.0)
    both = Panel("a", "", "", [Band("95 %", t, t, t), Curve("ours", t, t), Curve("ours", t, t)])
    one, other = (Panel("b", "", "", [Curve(name, t, t)]) for name in ("ours", "theirs"))
    assert both.legend == (("95 %", "band"), ("ours", "line"))
    assert Plot("", [one, both]).shared_legend == both.legend
    assert Plot("", [both, other]).shared_legend == ()


@pytest.mark.parametrize("columns", [1, 2])
def test_legends_of_single_panels_cover_neither_a_title_nor_a_wide_curve(columns):
    """The legend of a wide panel is beside the title, that of a narrow one inside."""
    from matplotlib.text import Text  # slow to import

    t = np.arange(3.0)
    panels = [
        Panel(title, "", "", [Curve(f"{title} {name}", t, t) for name in ("one", "two")])
        for title in ("a rather long title of the panel", "a rather long title of its neighbour")
    ]
    figure = Picture([Plot("", panels, columns)]).figure()
    figure.draw_without_rendering()
    for ax in figure.axes:
        legend = ax.get_legend().get_window_extent()
        words = ax.get_title("left")
        (title,) = [text for text in ax.findobj(Text) if text.get_text() == words]
        assert not legend.overlaps(title.get_window_extent())
        assert (legend.y1 <= ax.bbox.y1) == (columns == 2)


def test_ranges_may_be_reversed_and_logarithmic():
    t = np.arange(1.0, 4.0)
    panel = Panel(
        "", "", "", [Curve("a", t, t)], log_y=True, x_range=(3.0, 0.0), y_range=(0.1, 1000.0)
    )
    layout = panel_figure(panel, {"a": "#123456"}, 9)["layout"]
    assert layout["xaxis"]["range"] == [3.0, 0.0]
    assert layout["yaxis"]["range"] == pytest.approx([-1, 3])


def test_curves_of_equal_scales_do_not_touch_the_edge():
    angle = np.linspace(0, 2 * np.pi, 50)
    ring = Curve("ring", 3 * np.cos(angle), 2 + np.sin(angle))
    layout = panel_figure(Panel("", "x", "y", [ring], equal=True), {"ring": "#2266aa"}, 100)[
        "layout"
    ]
    for axis, values in (("xaxis", ring.x), ("yaxis", ring.y)):
        low, high = layout[axis]["range"]
        assert low < values.min()
        assert high > values.max()


def test_a_label_has_the_unit_of_its_panel():
    panel = Panel("", "x", "mass", [], unit="kg")
    assert panel.y_label == "mass [kg]"
    assert replace(panel, unit="").y_label == "mass"


def test_curves_of_unequal_length_are_refused():
    with pytest.raises(
        InvalidSamples, match=r"curve 'a': x and y must have the same length, got \[3, 2\]"
    ):
        Curve("a", np.zeros(3), np.zeros(2))
    with pytest.raises(InvalidSamples, match="curve 'b'"):
        Band("b", np.zeros(3), np.zeros(3), np.zeros(2))


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("ending", "start"), [("png", b"\x89PNG"), ("svg", b"<?xml"), ("PDF", b"%PDF")]
)
def test_every_style_is_drawn_into_a_file_of_the_kind_that_its_name_says(tmp_path, ending, start):
    (plot, _) = everything_page().sections[0].parts
    save_picture([plot, plot], tmp_path / f"a.{ending}", title="All", words=["One.", "Two."])
    assert [path.name for path in tmp_path.iterdir()] == [f"a.{ending}"]
    assert (tmp_path / f"a.{ending}").read_bytes().startswith(start)


def test_a_picture_that_cannot_be_written_leaves_nothing(tmp_path):
    plot = Plot("nothing", [])
    with pytest.raises(UnreadableFile, match=r"a\.xyz: pictures are written as \.png, \.svg"):
        save_picture([plot], tmp_path / "a.xyz")
    with pytest.raises(UnreadableFile, match=r"cannot write .*a\.png: there is no folder .*none"):
        save_picture([plot], tmp_path / "none" / "a.png")
    (tmp_path / "taken.png").mkdir()
    with pytest.raises(UnreadableFile, match=r"cannot write .*taken.png: it is a folder"):
        save_picture([plot], tmp_path / "taken.png")
    assert [path.name for path in tmp_path.iterdir()] == ["taken.png"]


def test_a_plot_in_a_notebook_is_small_and_needs_nothing_else():
    page = identification()
    text = notebook_html((), (), plot=page.picture[0])
    assert re.fullmatch(
        r'<img alt="[^"<>]*" style="[^"<>]*" src="data:image/png;base64,[\w+/=]+">', text.strip()
    )
    assert 10_000 < len(text) < 200_000
    evil = Plot('"><script>', [Panel("$broken_{ words$", "$x_{$", "", [])])
    evil = notebook_html(("<script>",), [("<script>",)], words="<script>", plot=evil)
    assert "<script>" not in evil


def test_without_templates_a_notebook_shows_the_text_of_a_value(monkeypatch):
    found = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "jinja2" else found(name)
    )
    assert notebook_html(("mass",), [("1.5",)]) is None
    assert Picture(())._repr_html_() is None
