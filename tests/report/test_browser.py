"""Pages in a real browser: plots drawn, no error or request, no overflow, printable."""

import base64

import numpy as np
import pytest

from browser import chromium
from report_pages import PAGES, small_page
from steelyard.drawing import Scene
from steelyard.drawing._mesh import Mesh
from steelyard.report import Page, Section, Table
from tiers import thorough_but
from waiting import wait_until

pytestmark = pytest.mark.skipif(chromium() is None, reason="no Chromium on this machine")

PLOTS = "document.querySelectorAll('[data-plot]').length"
BEYOND = (
    "[...document.querySelectorAll({})].filter(e => e.getBoundingClientRect().right > {}).length"
)
DRAWN = "document.querySelectorAll('.plot[data-drawn] .main-svg .xy').length"


QUICK = ("everything", "payload")
"""Pages with every part of a page; the others belong to the thorough tests."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("pages")
    small_page().write(path / "small.html")
    return path


@pytest.mark.parametrize("name", thorough_but(QUICK, PAGES))
def test_every_plot_is_drawn_without_error_or_network(browser, folder, name):
    path = folder / f"{name}.html"
    PAGES[name]().write(path)
    browser.open(path)
    count = browser.ask(PLOTS)
    assert count >= 4
    assert browser.ask("document.querySelectorAll('.plot[data-drawn]').length") == count
    assert browser.ask(DRAWN) >= count
    assert browser.ask("document.getElementById('errors').textContent") == ""
    assert browser.complaints == []
    assert browser.requests == [path.as_uri()]
    assert browser.ask("typeof window.evil") == "undefined"
    for width in (1280, 390):
        if width < 1280:
            browser.resize(width)
        assert browser.ask("window.innerWidth") == width
        assert browser.ask("document.documentElement.scrollWidth <= window.innerWidth")
        assert browser.ask(BEYOND.format("'.plot svg'", "innerWidth + 1")) == 0
    assert browser.ask(CUT) == 0
    assert browser.complaints == []
    if name == "everything":
        assert_curves_have_ink_and_bars_their_words(browser)


def test_a_page_opened_on_a_phone_is_one_column(browser, folder):
    browser.open(folder / "small.html", width=390)
    assert browser.ask("document.documentElement.scrollWidth") == 390
    assert browser.ask("[...document.querySelectorAll('.plot')].every(p => p.clientWidth > 300)")
    assert browser.complaints == []


CUT = (
    "[...document.querySelectorAll('.scroll')]"
    ".filter(s => s.scrollWidth > s.clientWidth + 1).length"
)
LISTED = "document.querySelectorAll('table.listed').length"


def test_tables_too_wide_for_a_phone_are_lists(browser, folder):
    head = ("joint", "Coulomb friction", *(f"quantity_{k}" for k in range(6)))
    rows = [[f"joint_{k}", *[12.345 + k] * 7] for k in range(3)]
    wide = Table("Wide.", head, rows)
    narrow = Table("Narrow.", ("", "weighed", "unit"), [["mass", 2.5, "kg"]])
    Page("Tables", (), [Section("", (), [wide, narrow])]).write(folder / "tables.html")
    browser.open(folder / "tables.html", width=390)
    assert browser.ask(LISTED) == 1
    assert browser.ask(CUT) == 0
    assert browser.ask("document.documentElement.scrollWidth") == 390
    cell = "document.querySelectorAll('table.listed td')[1]"
    assert browser.ask(f"getComputedStyle({cell}, '::before').content") == '"Coulomb friction"'
    top = "document.querySelectorAll('table.listed td')[{}].getBoundingClientRect().top"
    assert browser.ask(top.format(1)) < browser.ask(top.format(2)) < browser.ask(top.format(6))
    browser.resize(1280)
    assert browser.ask(LISTED) == 0
    browser.resize(390)
    assert browser.ask(LISTED) == 1


def assert_curves_have_ink_and_bars_their_words(browser):
    ink = "p.querySelectorAll('.js-line, .point, .js-fill').length"
    first, second, third, empty = browser.ask(
        f"[...document.querySelectorAll('.plot')].map(p => {ink})"
    )
    assert first >= 3
    assert second == 5
    assert third > 200
    assert empty == 0
    assert browser.ask("document.querySelectorAll('.plot')[1].textContent.includes('onerror')")


def test_paper_keeps_plots_and_tables_whole(browser, folder):
    browser.open(folder / "small.html")
    widths = "[...document.querySelectorAll('.plot .svg-container')].map(e => e.clientWidth)"
    before = browser.ask(widths)
    pdf = base64.b64decode(browser.call("Page.printToPDF", preferCSSPageSize=True)["data"])
    assert pdf.startswith(b"%PDF")
    browser.resize(1280)
    assert browser.ask(widths) == before  # the screen is as it was
    browser.ask("window.dispatchEvent(new Event('beforeprint'))")
    assert max(browser.ask(widths)) <= 670
    browser.call("Emulation.setEmulatedMedia", media="print")
    browser.ask("document.body.style.width = '680px'")  # A4 less its margins
    edge = "document.body.getBoundingClientRect().right + 1"
    assert browser.ask(BEYOND.format("'.plot svg, table'", edge)) == 0
    flat = (
        "[...document.querySelectorAll('.plot')].filter(p => p.getBoundingClientRect().height <"
        " 60).length"
    )
    assert browser.ask(flat) == 0
    browser.call("Emulation.setEmulatedMedia", media="")


def test_a_page_is_dark_where_the_screen_is_and_light_on_paper(browser, folder):
    def shown():
        colour = "getComputedStyle({}).backgroundColor"
        return browser.ask(colour.format("document.body")), browser.ask(
            colour.format("document.querySelector('.plot .main-svg')").replace(
                "backgroundColor", "background"
            )
        )

    scheme = {"name": "prefers-color-scheme", "value": "dark"}
    browser.call("Emulation.setEmulatedMedia", features=[scheme])
    browser.open(folder / "small.html")
    page, plot = shown()
    assert page == "rgb(20, 24, 29)"
    assert "rgb(20, 24, 29)" in plot
    browser.ask("window.dispatchEvent(new Event('beforeprint'))")
    assert "rgb(255, 255, 255)" in shown()[1]
    browser.ask("window.dispatchEvent(new Event('afterprint'))")
    assert "rgb(20, 24, 29)" in shown()[1]
    browser.call("Emulation.setEmulatedMedia", features=[{**scheme, "value": "light"}])
    wait_until(lambda: "rgb(255, 255, 255)" in shown()[1])  # plots follow the page
    assert shown()[0] == "rgb(255, 255, 255)"
    assert browser.complaints == []
    browser.call("Emulation.setEmulatedMedia", features=[])


def test_a_plot_that_fails_says_so_and_the_others_are_drawn(browser, folder):
    path = folder / "broken.html"
    path.write_text(small_page().html().replace('id="figures">', 'id="figures">!', 1))
    browser.open(path)
    assert "This page has an error" in browser.ask("document.getElementById('errors').textContent")
    text = small_page().html().replace('"layout":{"xaxis"', '"layout":{"nothing"', 1)
    path.write_text(text)
    browser.open(path)
    failed = browser.ask("[...document.querySelectorAll('.plot.failed')].map(p => p.textContent)")
    assert len(failed) == 1
    assert "could not be drawn" in failed[0]
    assert (
        browser.ask("document.querySelectorAll('.plot[data-drawn]').length")
        == browser.ask(PLOTS) - 1
    )


def test_a_browser_that_cannot_unpack_shows_a_message(browser, folder):
    text = (
        small_page()
        .html()
        .replace("<head>", "<head><script>delete window.DecompressionStream</script>", 1)
    )
    path = folder / "old.html"
    path.write_text(text)
    browser.open(path)
    assert "too old to draw" in browser.ask("document.getElementById('errors').textContent")
    assert browser.ask("document.querySelectorAll('.plot.failed').length") == browser.ask(PLOTS)


PIXELS = """[...document.querySelectorAll('canvas.view')].map(canvas => {
  const data = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
  let drawn = 0, sum = 0;
  for (let i = 0; i < data.length; i += 4) {
    drawn += data[i + 3] > 60;
    sum = (31 * sum + data[i] + 3 * data[i + 1] + 7 * data[i + 2]) | 0;
  }
  return [drawn, sum];
})"""
CLOCK = "document.querySelector('.controls output').textContent"


def test_the_arm_in_3d_turns_and_moves(browser, folder):
    parts = (part for section in PAGES["payload"]().sections for part in section.parts)
    scenes = [part for part in parts if isinstance(part, Scene)]
    Page("A scene alone", (), [Section("", (), scenes)]).write(folder / "scene.html")
    browser.open(folder / "scene.html")
    (arm, first), (load, second) = browser.ask(PIXELS)
    assert min(arm, load) > 2000
    browser.ask("document.querySelector('.view').scrollIntoView({block: 'center'})")
    x, y = browser.ask(
        "(r => [r.x + 99, r.y + 99])(document.querySelector('.view').getBoundingClientRect())"
    )
    for kind, across in (("mousePressed", 0), ("mouseMoved", 60), ("mouseReleased", 60)):
        place = {"x": x + across, "y": y, "button": "left", "buttons": 1, "clickCount": 1}
        browser.call("Input.dispatchMouseEvent", type=kind, **place)
    browser.wait(f"(p => p[0][1] != {first} && p[1][1] != {second})({PIXELS})")
    assert browser.ask(CLOCK) == "0.0 s"
    slider = "document.querySelector('.controls input')"
    browser.ask(f"{slider}.value = 30; {slider}.dispatchEvent(new Event('input'))")
    assert browser.wait(f"{CLOCK} != '0.0 s' && {CLOCK}") == "5.0 s"
    assert browser.ask("document.getElementById('errors').textContent") == ""


GREEN = """(canvas => {
  const data = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
  let found = 0;
  for (let i = 0; i < data.length; i += 4) found += data[i + 1] > 90 && data[i] < 60;
  return [found, Math.min(canvas.width, canvas.height)];
})(document.querySelector('canvas.view'))"""


def test_a_mesh_covers_what_its_faces_project_to_and_what_is_inside(browser, folder):
    """Half the sum of all projected faces is the silhouette of a convex body."""
    corners = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]], dtype=float)
    inward = np.array([[1, 2, 0], [3, 1, 0], [3, 2, 1], [2, 3, 0]])
    mesh = Mesh.of(corners, inward, frame=0, colour="#00ff00")
    inside = Mesh.of(0.3 * corners + 0.1, inward, frame=0, colour="#ff0000")
    scene = Scene("", [mesh, inside], np.eye(4)[None, None], np.zeros(1), 0, 0.5, 0.1)
    Page("A mesh alone", (), [Section("", (), [scene])]).write(folder / "mesh.html")
    browser.open(folder / "mesh.html")
    drawn, size = browser.ask(GREEN)
    eye = [np.cos(-0.9) * np.cos(0.38), np.sin(-0.9) * np.cos(0.38), np.sin(0.38)]
    a, b, c = corners[inward].transpose(1, 0, 2)
    silhouette = np.abs(np.cross(b - a, c - a) / 2 @ eye).sum() / 2
    scale = size / (2.1 * scene.to_dict()["reach"])
    assert drawn == pytest.approx(silhouette * scale**2, rel=0.03)
    assert browser.ask("document.getElementById('errors').textContent") == ""
