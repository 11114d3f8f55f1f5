"""The page of a fleet: one file, worst arm first, a page for each arm, small for many arms."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest

from browser import chromium
from steelyard.fleet._page import fleet_html
from steelyard.fleet._trend import ArmTrend, ChangePoint, Trends

KINDS = ("Fc", "Fv", "B", "gain", "residual")


JOINTS = ("shoulder_pan", "shoulder_lift", "elbow", "wrist_1", "wrist_2", "wrist_3", "wrist_4")


def made_up(arms, logs, joints=6, changed=()):
    """A fleet without logs: random series, a step in some of them."""
    rng = np.random.default_rng(3)
    names = [*((kind, j + 1) for kind in KINDS for j in range(joints)), ("payload", 0)]
    time = 1.77e9 + 86400.0 * np.arange(logs)
    found = []
    for k in range(arms):
        value, std = rng.normal(size=(len(names), logs)), np.full((len(names), logs), 0.5)
        changes = [ChangePoint(logs // 2, False, 0.1, 0.1, 0.5) for _ in names]
        if k in changed:
            value[1, logs // 2 :] += 6.0
            changes[1] = ChangePoint(logs // 2, False, 6.0, 0.3, 1e-12)
        name = f"arm <{k}> & co" if k == 0 else f"arm{k}"
        files = [f"{i}.parquet" for i in range(logs)]
        level = ChangePoint(0, False, 0.7, 0.02, 1e-30) if k == 1 else None
        odd = {"9.parquet": 7.0} if k == 2 else {}
        found.append(
            ArmTrend(name, time, files, JOINTS[:joints], names, value, std, changes, level, odd)
        )
    return Trends(found, 0.05)


def test_the_worst_arm_comes_first_and_words_are_text():
    page = fleet_html(made_up(4, 20, changed=(3,)), {"arm2": 5})
    assert re.findall(r'class="name"><a href="([^"]*)"', page)[:2] == ["#arm=arm1", "#arm=arm3"]
    assert "2 of 4 arms have changed, in 2 of 125 series." in page
    assert "Carries 0.700 ± 0.039 kg more than configured" in page
    assert "Coulomb friction of shoulder_lift steps by +6.00 ± 0.59 Nm" in page
    assert "arm &lt;0&gt; &amp; co" in page
    assert "<0>" not in page
    assert "5 more are unusable" in page
    assert "http://" not in page.replace("http://www.w3.org/2000/svg", "")


def test_no_change_is_said_too():
    assert "None of 1 compared arms has changed beyond noise." in fleet_html(made_up(1, 20), {})
    assert "Nothing was compared." in fleet_html(Trends([], 0.05), {})


def test_an_arm_that_was_not_compared_is_not_called_unchanged():
    _, second = made_up(2, 20).arms
    (few,) = made_up(1, 5).arms
    few = replace(few, changes=[None] * len(few.changes), undated=4)
    page = fleet_html(Trends([few, replace(second, level=None)], 0.05), {})
    assert "None of 1 compared arms has changed beyond noise." in page
    assert "Not compared: 5 dated logs, and at least 8 are needed; 4 logs are undated" in page
    page = fleet_html(Trends([few], 0.05), {})
    assert "Nothing was compared." in page
    assert "beyond noise" not in page.partition("<script>")[0]
    data = json.loads(re.search(r'id="data">(.*?)</script>', page, re.DOTALL)[1])
    assert [arm["words"][0][:12] for arm in data["arms"]] == ["Not compared"]


def test_few_loaded_logs_are_not_called_unchanged():
    (arm,) = made_up(1, 20).arms
    few = replace(arm, loaded=np.arange(20) < 3)
    page = fleet_html(Trends([few], 0.05), {})
    assert "3 loaded logs are too few to find a change of the payload" in page
    enough = replace(arm, loaded=np.arange(20) < 9)
    assert "too few" not in fleet_html(Trends([enough], 0.05), {})


def test_the_top_of_the_page_says_what_it_is_about():
    page = fleet_html(made_up(2, 20), {})
    assert "<span>arms: 2</span>" in page
    assert "<span>logs: 2026-02-02 to 2026-02-21</span>" in page
    assert "<span>written: " in page


@pytest.mark.thorough
def test_a_year_of_200_arms_is_small():
    page = fleet_html(made_up(200, 365, changed=range(20)), {})
    assert len(page) < 10e6


def test_arms_of_two_kinds_and_loaded_logs_have_curves_of_their_own():
    """Heads name the joints of each kind of arm; loaded and empty logs are not one curve."""
    six = made_up(1, 20).arms[0]
    seven = made_up(2, 20, joints=7).arms[1]
    loaded = np.arange(20) % 2 == 1
    page = fleet_html(Trends([six, replace(seven, loaded=loaded)], 0.05), {})
    heads = re.findall(r'<th class="joint">(\w+) <small>', page)
    assert heads == [*JOINTS, "payload", *JOINTS[:6], "payload"]  # the changed arm comes first
    facts = json.loads(re.search(r'id="data">(.*?)</script>', page).group(1))["arms"]
    payloads = [[x for x in arm["series"] if x["kind"] == "payload"] for arm in facts]
    assert [len(each) for each in payloads] == [2, 1]
    assert payloads[0][1]["title"] == "weighed less configured, loaded logs"
    assert len(payloads[0][1]["y"]) == len(payloads[0][1]["time"]) == 10
    shown = payloads[0][1]
    means = shown["low"] + shown["step"] * np.array(shown["y"])
    np.testing.assert_allclose(means, seven.value[-1, loaded], atol=shown["step"])
    assert ["at" in series for series in payloads[0]] == [False, True]  # its loads are too heavy


@pytest.mark.skipif(chromium() is None, reason="there is no Chromium")
def test_a_browser_draws_it(tmp_path, browser):
    path = tmp_path / "fleet.html"
    path.write_text(fleet_html(made_up(30, 40, changed=(5, 7)), {}))
    browser.open(path)
    assert browser.complaints == []
    assert browser.ask("document.querySelectorAll('td.spark svg').length") == 30 * 7
    assert browser.ask("document.querySelectorAll('td.spark .changed').length") == 3
    spark = "document.querySelector('td.spark svg')"
    assert "shoulder_pan, last 2026-" in browser.ask(f"{spark}.querySelector('title').textContent")
    assert browser.ask(f"{spark}.querySelectorAll('text.scale').length") == 2
    browser.ask("document.querySelector('a[href=\"#arm=arm5\"]').click()")
    browser.ask("new Promise(f => setTimeout(f, 100))")
    assert browser.ask("document.querySelector('#arm h1').textContent") == "arm5"
    assert browser.ask("document.querySelectorAll('#arm svg').length") == 31
    point = "new PointerEvent('pointermove', {clientX: 1e4})"
    browser.ask(f"document.querySelector('#arm svg').dispatchEvent({point})")
    value = browser.ask("document.querySelector('#arm svg text.value').textContent")
    assert re.fullmatch(r"2026-\d\d-\d\d: -?\d\.\d\d ± 0\.98 Nm", value)
    assert browser.ask("document.getElementById('fleet').hidden")
    assert browser.ask("document.getElementById('errors').textContent") == ""
    browser.ask("document.querySelector('#arm a').click()")
    browser.ask("new Promise(f => setTimeout(f, 100))")
    assert not browser.ask("document.getElementById('fleet').hidden")
    browser.resize(390)
    assert browser.ask("document.querySelectorAll('table.arms.listed').length") == 1
    assert browser.ask("document.documentElement.scrollWidth") == 390
    scroll = "document.querySelector('.scroll')"
    assert browser.ask(f"{scroll}.scrollWidth <= {scroll}.clientWidth")


@pytest.mark.skipif(chromium() is None, reason="there is no Chromium")
def test_scales_of_small_negative_numbers_keep_their_sign(tmp_path, browser):
    """A text that begins left of its drawing loses its minus."""
    (arm,) = made_up(1, 20).arms
    small = replace(arm, value=-0.00345 + 1e-4 * np.tanh(arm.value), std=1e-4 * arm.std)
    path = tmp_path / "fleet.html"
    path.write_text(fleet_html(Trends([small], 0.05), {}))
    browser.open(path)
    clipped = """
    [...document.querySelectorAll('text.scale, text.axis')].filter(
      text => text.getBoundingClientRect().left < text.ownerSVGElement.getBoundingClientRect().left
    ).map(text => text.textContent)
    """
    assert browser.ask(clipped) == []
    texts = "[...document.querySelectorAll('text.scale')].map(text => text.textContent)"
    ends = browser.ask(texts)
    assert any(text.startswith("-0.00") for text in ends)
    for high, low in zip(ends[::2], ends[1::2], strict=True):
        assert high != low
        assert len(high.partition(".")[2]) == len(low.partition(".")[2])
    browser.ask("document.querySelector('a[href^=\"#arm\"]').click()")
    browser.ask("new Promise(f => setTimeout(f, 100))")
    assert browser.ask("document.querySelectorAll('text.axis').length") > 8
    assert browser.ask(clipped) == []
