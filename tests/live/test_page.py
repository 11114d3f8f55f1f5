"""The live page agrees with the estimator and sets nothing without a question."""

import http.client
import json
import re
import socket
import sys
import threading
import time
from contextlib import contextmanager
from dataclasses import replace
from itertools import accumulate, chain, islice, repeat
from types import SimpleNamespace
from urllib.parse import urlsplit

import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from scipy.special import chdtri

from browser import chromium
from conftest import steelyard
from live_helpers import Rows, served, weighed
from steelyard.cli.live import opened_page
from steelyard.drawing import Band, Curve, Panel, Plot
from steelyard.errors import MissingExtra, SourceFailed
from steelyard.identification import identify
from steelyard.inertia import InertialParameters
from steelyard.io import write
from steelyard.live import (
    Event,
    EventKind,
    LivePage,
    LiveWeigher,
    PageOptions,
    ReplaySource,
    RestState,
    Row,
    StopReport,
    TorqueSetup,
    UrController,
    snapshots_of,
)
from steelyard.live._controller import ControllerPayload
from steelyard.live._curves import chart_data, title_html
from steelyard.live._page import SnapshotPage
from steelyard.live._page_access import (
    is_own_host,
    own_browsers_only,
    own_names,
    page_url,
)
from steelyard.live._row_readers import mode_in_row
from steelyard.live._words import LinkState, answer_html, link_html, mismatch_words
from steelyard.robot import load_robot
from steelyard.signals import prepare
from steelyard.simulation import SimulationOptions, simulate
from steelyard.trajectory import FourierTrajectory
from steelyard.twin._backend import NOMINAL_GAINS
from steelyard.twin._controller import SERIAL_NUMBER
from waiting import wait_until

viser = pytest.importorskip("viser")
in_a_browser = pytest.mark.skipif(chromium() is None, reason="no Chromium on this machine")

LOAD_KG, BELIEVED = 2.5, ControllerPayload(1.25, (0.0, 0.01, 0.02), (0.01,) * 3 + (0.0,) * 3)
SIXES = ("actual_q", "actual_current", "payload_inertia")
Q, CURRENT, INERTIA = ([f"{name}_{k}" for k in range(6)] for name in SIXES)
COLUMNS = ("timestamp", *Q, *CURRENT, "payload", *(f"payload_cog_{k}" for k in range(3)), *INERTIA)


@pytest.fixture(scope="module")
def arm():
    robot = load_robot("ur10e").with_serial(SERIAL_NUMBER)
    drive = replace(
        robot.drive, gain=np.array(NOMINAL_GAINS), gain_std=np.zeros(6), gain_common=0.0
    )
    return robot.with_drive(drive)


def run_of(robot, seed, load=None):
    motion = FourierTrajectory.random(
        robot.home, reach=1.0, speed=1.2, period_s=6.0, harmonics=4, seed=seed
    )
    options = SimulationOptions(step_s=0.004)
    return simulate(
        robot, motion, payload=load, seed=seed, rate_hz=125.0, options=options
    ).recording


@pytest.fixture(scope="module")
def weigher(arm):
    """One that has weighed an arm which moved empty for a period, and then picked up a part."""
    part = InertialParameters.from_com(LOAD_KG, [0.01, 0.02, 0.05], 0.004 * np.eye(3), arm.flange)
    model = identify(arm, prepare(run_of(arm, 0), drive=arm.drive))
    found = LiveWeigher(TorqueSetup(model, COLUMNS, accuracy=0.05))
    found.snapshots = []
    for period, load in enumerate((None, part)):
        recording = run_of(arm, 1, load)
        for k, t in enumerate(recording.t):
            t, told = t + 6.0 * period, (BELIEVED.mass, *BELIEVED.cog, *BELIEVED.inertia)
            found.take(Row(t, (t, *recording.q[k], *recording.current[k], *told)))
            if k % 25 == 0:
                found.snapshots.append(found.snapshot())
    return found


@contextmanager
def shown(weigher, source=None, **options):
    with SnapshotPage(
        weigher.view, source or ReplaySource("log.parquet"), port=0, **options
    ) as page:
        for snapshot in weigher.snapshots:
            page.show(snapshot)
        page._received_s = float("inf")  # as if rows went on
        yield page


def text(name):
    return f"document.querySelector('[data-name=\"{name}\"]')?.innerText"


def click(browser, word):
    buttons = "[...document.querySelectorAll('button:enabled')]"
    browser.wait(f"{buttons}.some(b => b.innerText.trim() == '{word}')")
    browser.ask(f"{buttons}.find(b => b.innerText.trim() == '{word}').click()")


def type_in(browser, words):
    """Types into the field of the open question."""
    field = "document.querySelector('[role=dialog] input, [role=dialog] textarea')"
    browser.wait(f"!!{field}")
    browser.ask(f"{field}.focus()")
    browser.call("Input.insertText", text=words)


# --- snapshots


def test_a_part_that_is_picked_up_is_an_event(weigher):
    events = [event for snapshot in weigher.snapshots for event in snapshot.events]
    assert [event.kind for event in events] == [EventKind.PICK]
    kg, half_width = re.fullmatch(
        r"picked up ([\d.]+) \+- ([\d.]+) kg .* s ago", events[0].words
    ).groups()
    assert float(kg) == pytest.approx(LOAD_KG, abs=float(half_width))
    assert float(half_width) < 0.1 * LOAD_KG
    assert events[0].t > 6.0


def test_predicted_torques_are_the_measured_ones_and_empty_ones_are_not(weigher):
    last = weigher.snapshots[-1]
    measured, *predicted = last.trace
    rest = np.isnan(predicted[0])
    loaded, empty = np.abs(predicted - measured)[:, ~rest].max(axis=1)
    assert not rest.all()
    assert loaded < 3.0 < empty


def test_the_answer_of_another_thread_is_the_weighers_own(weigher):
    assert weigher.view.answer(weigher.snapshots[-1].state).body == weigher.payload().body


def test_an_update_says_what_to_do_next(weigher):
    steps = list(dict.fromkeys(snapshot.next_step for snapshot in weigher.snapshots))
    assert steps[0] == "wait: the filters fill"
    assert steps[1].startswith("move shoulder_lift_joint: the mass is hardly known")
    assert any(re.fullmatch(r"nothing: less than 0\.0\d+ kg is carried", step) for step in steps)
    assert steps[-1].startswith("nothing: the mass is known as requested")


def test_the_scene_is_the_arm_and_its_ellipsoids_are_those_of_the_estimate(weigher, arm, rng):
    def transform(handle):
        T = np.eye(4)
        T[:3, :3], T[:3, 3] = (
            Rotation.from_quat(np.roll(handle.wxyz, -1)).as_matrix(),
            handle.position,
        )
        return T

    with shown(weigher) as page:
        scene, q, payload = page._scene, rng.uniform(-2, 2, 6), weigher.payload()
        scene.pose(q)
        frames = list(accumulate((transform(handle) for handle in scene._joints), np.matmul))
        np.testing.assert_allclose(frames, arm.joint_frames(q), atol=1e-6)
        scene.carry(payload)
        R, axes = transform(scene._body)[:3, :3], np.array(scene._body.scale)
        second = payload.mass / 5 * R @ np.diag(axes**2) @ R.T  # of a homogeneous ellipsoid
        np.testing.assert_allclose(second, payload.body.second_moment_com, atol=1e-7)
        R, axes = transform(scene._region)[:3, :3], np.array(scene._region.scale)
        inside = payload.com + 0.99 * axes[0] * R[:, 0]
        off = inside - payload.com
        squared = off @ np.linalg.solve(payload.body.com_covariance(payload.covariance), off)
        assert squared == pytest.approx(0.99**2 * chdtri(3, 0.05), rel=1e-3)
        np.testing.assert_allclose(scene._centre.position, payload.com, atol=1e-6)
        scene.carry(None)
        assert not any(handle.visible for handle in (scene._body, scene._region, scene._centre))


def test_a_load_whose_inertia_is_not_known_is_a_sphere(weigher):
    payload = weigher.payload()
    covariance = payload.covariance.copy()
    covariance[4:, 4:] = np.inf
    with shown(weigher) as page:
        page._scene.carry(replace(payload, covariance=covariance))
        radius = page._scene._body.scale[0]
        assert 2700.0 * 4 / 3 * np.pi * radius**3 == pytest.approx(payload.mass)
        assert page._scene._body.visible


def test_a_load_whose_centre_is_not_known_is_not_drawn(weigher):
    payload = weigher.payload()
    covariance = np.full((10, 10), np.inf)
    covariance[0, 0] = payload.covariance[0, 0]
    with shown(weigher) as page:
        scene = page._scene
        scene.carry(payload)
        scene.carry(replace(payload, covariance=covariance))
        assert not any(handle.visible for handle in (scene._body, scene._region, scene._centre))


# --- curves


def test_curves_are_on_one_x_and_within_the_range_of_the_panel():
    t = np.array([1.0, 2.0, np.nan, 3.0, 5.0])
    y = np.array([10.0, 2.0, np.nan, 3.0, 1.0])
    parts = [
        Band("95 %", t, y - 1, y + 1),
        Curve("mass <b>", t, y),
        Curve("asked", np.array([0.0, 6.0]), np.array([2.0, 2.0]), "dashed"),
    ]
    panel = Panel("mass", "time [s]", "mass <b>", parts, y_range=(0.5, 4.0), unit="kg")
    x, low, high, mass, asked = chart_data(panel)
    np.testing.assert_array_equal(x, [0, 1, 2, 3, 5, 6])
    np.testing.assert_array_equal(mass[1:5], [4, 2, 3, 1])
    np.testing.assert_array_equal(low[1:5], [4, 1, 2, 0.5])
    np.testing.assert_array_equal(high[1:5], [4, 3, 4, 2])
    np.testing.assert_array_equal(asked, 2 * np.ones(6))
    title = title_html(panel, Plot("", [panel]).colours)
    assert "mass &lt;b&gt;" in title
    assert "[kg]" in title
    empty = chart_data(Panel("", "x", "y", [Curve("none", t[:0], t[:0])]))
    assert [len(column) for column in empty] == [0, 0]


def test_curves_are_over_the_time_of_day(weigher, monkeypatch):
    with shown(weigher) as page:
        page.close()
        page._clock_offset_s = np.nan
        times = []
        for now_s, t in ((5.0, 100.0), (6.2, 101.0), (7.0, 0.5), (8.0, 1.5)):
            monkeypatch.setattr(time, "time", lambda now_s=now_s: 1e9 + now_s)
            times.append(page._time_of_day_s(t) - 1e9)
    assert times == [5.0, 6.0, 7.0, 8.0]  # the sender's steps; another clock begins at 7 s


# --- connection and modes


@pytest.mark.parametrize(
    ("link", "words", "style"),
    [
        (LinkState(), "connecting", "wait"),
        (LinkState(EventKind.CONNECTED, "running"), "connected", "good"),
        (LinkState(EventKind.CONNECTED, "", "protective stop"), "connected", "wait"),
        (LinkState(EventKind.CONNECTED, age_s=3.0), "connected, but no rows", "bad"),
        (LinkState(EventKind.LOST, age_s=3.0), "connection lost, connecting again", "bad"),
        (LinkState(EventKind.ENDED), "the stream has ended", "bad"),
    ],
)
def test_the_state_of_the_connection_is_shown(link, words, style):
    found = link_html(link)
    assert f">{words}<" in found
    assert f"chip {style}" in found
    assert ("last row 3 s ago, at " in found) == (link.age_s == 3.0)


def test_a_mode_that_is_not_known_any_more_is_the_last_one():
    running = LinkState(EventKind.CONNECTED, "running, safety normal")
    assert ">running, safety normal<" in link_html(running)
    for link in (running._replace(age_s=3.0), running._replace(connection=EventKind.LOST)):
        assert ">last mode: running, safety normal<" in link_html(link)


def test_modes_are_read_from_rows_of_each_maker():
    assert mode_in_row({"robot_mode": 7.0, "safety_mode": 3.0}) == "running, safety protective stop"
    assert mode_in_row({"robot_mode": 5.0, "m_load": 0.0}) == "user stop"
    assert mode_in_row({"safety_mode": 3.0}) == "safety protective stop"
    assert mode_in_row({"robot_mode": 7.0}) == "running"
    assert mode_in_row({"q_0": 0.0}) == ""


def test_a_lost_connection_is_shown_at_once(weigher):
    """No row comes after it that would take the next snapshot with it."""
    lost = Event(EventKind.LOST, "the connection was lost")
    found = list(islice(snapshots_of(chain([lost], repeat(None)), weigher, every_s=1e9), 1))
    assert lost in found[0].events
    with shown(weigher) as page:
        page.show(found[0])
        page._write(found[0], ())
        assert "connection lost, connecting again" in page._link.content


# --- nothing fails silently


def test_a_page_that_cannot_draw_ends_with_its_reason(weigher, monkeypatch):
    with shown(weigher) as page:
        monkeypatch.setattr(page, "_remember", lambda _: 1 / 0)
        page.show(replace(weigher.snapshots[-1], rows=10**6))
        wait_until(lambda: page.failure is not None)
        assert isinstance(page.failure, ZeroDivisionError)


@pytest.mark.thorough
def test_the_weighing_process_learns_why_the_page_has_ended(weigher):
    broken = SimpleNamespace(
        rows_seen=lambda: replace(weigher.rows_seen(), sample="nonsense"),
        view=weigher.view,
        row=weigher.row,
    )

    with LivePage(weigher.setup, ReplaySource("log.parquet"), PageOptions(port=0)) as page:
        page.attach(broken)
        with pytest.raises(SourceFailed, match=r"the page failed: \w+: .*; track without a page"):
            wait_until(lambda: any(page.look(False)), pause_s=0.02)


def test_a_button_that_fails_says_so(weigher, monkeypatch):
    said = []
    monkeypatch.setattr("steelyard.live._page._say", lambda client, *words: said.append(words))
    monkeypatch.setattr("steelyard.live._page.stop", lambda arm: 1 / 0)
    with shown(weigher, UrController("127.0.0.1")) as page:
        page._stop(SimpleNamespace(client=SimpleNamespace()))
    assert said == [("This failed", "ZeroDivisionError: division by zero")]


# --- in the browser


@in_a_browser
@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0"])
def test_a_phone_shows_stop_button_table_curves_and_arm(weigher, browser, host):
    with shown(weigher, UrController("127.0.0.1"), host=host) as page:
        browser.visit(page.url, width=390, height=844)
        browser.wait("document.querySelectorAll('.uplot canvas').length == 4")
        box = "[...{}].map(e => e.getBoundingClientRect()).map(r => [r.left, r.right, r.top])"
        buttons = (
            "document.querySelectorAll('button')].filter(b => b.innerText.trim() == 'Stop the arm'"
        )
        stop = box.format(f"[...{buttons})")
        browser.wait(f"{stop}[0][2] < 500")  # the panel opens slowly
        [[left, right, top]] = browser.ask(stop)
        assert 0 <= left < right <= 390
        assert right - left > 300
        assert top > 0
        scene = "document.querySelector('canvas[data-engine]').getBoundingClientRect()"
        assert (
            browser.ask(f"{scene}.top + {scene}.height / 2") < top - 100
        )  # the camera looks there
        for part in (".sy table", ".uplot"):
            for left, right, _ in browser.ask(box.format(f"document.querySelectorAll('{part}')")):
                assert 0 <= left < right <= 390
        assert browser.ask("document.documentElement.scrollWidth") == 390
        browser.visit("about:blank")


@pytest.mark.thorough
@in_a_browser
def test_numbers_on_the_page_are_those_of_the_estimator_in_both_themes(weigher, browser):
    last = weigher.snapshots[-1]
    with shown(weigher) as page:
        browser.visit(page.url)
        browser.wait(f"{text('mass')} == '{last.payload.quantities[0].rounded[0]}'")
        for number in last.payload.quantities:
            name = number.name.split(" about ")[0]
            assert browser.ask(text(name)) == number.rounded[0]
        assert browser.ask(text("configured mass")) == "1.250"
        assert browser.ask(text("configured centre of mass z")) == "20.0"
        assert browser.ask(text("configured Izz")) == f"{0.01 + 1.25 * 0.01**2:.4f}"
        assert browser.ask(text("state")) == "5\N{NO-BREAK SPACE}% reached"
        assert browser.ask(text("next")).lower() == f"{last.next_step}.".lower()
        [picked] = [event for snapshot in weigher.snapshots for event in snapshot.events]
        assert picked.words.replace("+-", "±") in browser.ask(text("events"))
        browser.wait("document.querySelectorAll('.uplot canvas').length == 4")
        assert "Set payload" not in browser.ask("document.body.innerText")  # a recording takes none
        assert "share" not in browser.ask("document.body.innerText").lower().replace(
            "share [%]", ""
        )
        scheme = "document.documentElement.dataset.mantineColorScheme"
        assert browser.ask(scheme) == "light"
        light = browser.ask("getComputedStyle(document.querySelector('.sy')).color")
        browser.ask("[...document.querySelectorAll('input[type=checkbox]')].at(-1).click()")
        browser.wait(f"{scheme} == 'dark'")
        assert browser.ask("getComputedStyle(document.querySelector('.sy')).color") != light
        assert set(browser.requests) == {f"{page.url}/"}
        browser.visit("about:blank")


@in_a_browser
def test_a_payload_is_set_after_a_question_only(weigher, browser, tmp_path):
    with served(Rows(), speed=1.0) as found:
        found.controller.backend.robot = load_robot("ur10e")
        source = UrController(found.host, found.port)
        with shown(weigher, source, history_file=tmp_path / "part.undo.json") as page:
            browser.visit(page.url)
            found.controller.backend.speed = 0.2
            click(browser, "Set payload …")
            browser.wait("document.body.innerText.includes('stop the arm first')")
            click(browser, "Close")
            found.controller.backend.speed = 0.0
            click(browser, "Set payload …")
            browser.wait("document.body.innerText.includes('let nothing touch')")
            click(browser, "Cancel")
            browser.wait("!document.body.innerText.includes('let nothing touch')")
            assert found.controller.payload == ControllerPayload()
            assert not list(tmp_path.iterdir())
            click(browser, "Set payload …")
            click(browser, "Set it")
            browser.wait("document.body.innerText.includes('reports a payload of')")
            assert found.controller.payload.mass == pytest.approx(weigher.payload().mass, abs=1e-4)
            kept = json.loads((tmp_path / "part.undo.json").read_text())
            assert str(source) in str(kept)
            browser.visit("about:blank")


@pytest.mark.thorough
@in_a_browser
def test_the_serial_number_of_an_arm_that_does_not_report_it_is_asked_for(weigher, browser):
    with served(Rows(), speed=1.0) as found:
        found.controller.backend.robot = load_robot("ur10e")
        found.controller.serial_number = ""
        with shown(weigher, UrController(found.host, found.port)) as page:
            browser.visit(page.url)
            for number, words in (("20231", "belongs to another arm"), (SERIAL_NUMBER, "")):
                click(browser, "Set payload …")
                browser.wait("document.body.innerText.includes('the serial number of the arm is')")
                type_in(browser, number)
                click(browser, "Continue")
                browser.wait(f"document.body.innerText.includes('{words or 'let nothing touch'}')")
                if words:
                    click(browser, "Close")
            click(browser, "Set it")
            browser.wait("document.body.innerText.includes('reports a payload of')")
            assert found.controller.payload.mass == pytest.approx(weigher.payload().mass, abs=1e-4)
            browser.visit("about:blank")


# --- who may look, and who may not


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_the_page_listens_on_this_machine_alone(weigher):
    with shown(weigher) as page:
        port = int(page.url.rpartition(":")[2])
        with open("/proc/net/tcp") as table:
            places = [line.split()[1] for line in table if line.split()[1].endswith(f":{port:04X}")]
        assert page.url == f"http://127.0.0.1:{port}"
        assert places
        assert set(places) == {f"0100007F:{port:04X}"}


def connected_as(page, place, *, host, origin):
    """A client of a page at a place whose headers say another host and origin."""
    from websockets.sync.client import connect

    port = int(page.url.rpartition(":")[2])
    tcp = socket.create_connection((place, port))
    words = {"subprotocols": [f"viser-v{viser.__version__}"], "max_size": None}
    origin = origin and origin.format(port=port)
    return connect(f"ws://{host.format(port=port)}", sock=tcp, origin=origin, **words)


def address_in_the_network():
    """An address of this machine that others may reach; the test is skipped where it has none."""
    host = urlsplit(page_url("0.0.0.0", 1)).hostname
    if host.startswith("127.") or host == socket.gethostname():
        pytest.skip("this machine is in no network")
    return host


@pytest.mark.parametrize(
    ("host", "origin"),
    [
        ("127.0.0.1:{port}", "http://elsewhere.example"),
        ("127.0.0.1:{port}", "http://127.0.0.1:1"),
        ("127.0.0.1:{port}", "https://127.0.0.1:{port}"),
        ("127.0.0.1:{port}", "http://localhost:{port}"),
        ("127.0.0.1:{port}", "null"),
        ("127.0.0.1:{port}", None),
        ("elsewhere.example:{port}", "http://elsewhere.example:{port}"),  # DNS rebinding
        ("192.0.2.77:{port}", "http://192.0.2.77:{port}"),
        ("localhost.elsewhere.example:{port}", "http://localhost.elsewhere.example:{port}"),
    ],
)
def test_other_websites_get_no_connection(weigher, host, origin):
    from websockets.exceptions import InvalidStatus

    for listens_at in ("127.0.0.1", "0.0.0.0"):
        with (
            shown(weigher, host=listens_at) as page,
            pytest.raises(InvalidStatus, match="403"),
        ):
            connected_as(page, "127.0.0.1", host=host, origin=origin)


def test_the_page_is_reached_by_every_name_and_address_of_this_machine(weigher):
    address = address_in_the_network()
    own = socket.gethostname().lower()  # as browsers send it
    places = [("127.0.0.1", "127.0.0.1"), ("127.0.0.1", "localhost"), (address, address)]
    places += [(address, own), (address, f"{own.partition('.')[0]}.local")]
    with shown(weigher, host="0.0.0.0") as page:
        assert urlsplit(page.url).hostname == address
        for place, name in places:
            at = f"{name}:{{port}}"
            with connected_as(page, place, host=at, origin=f"http://{at}") as client:
                assert client.recv(timeout=30)
    with (
        shown(weigher) as page,
        connected_as(
            page, "127.0.0.1", host="localhost:9000", origin="http://localhost:9000"
        ) as tunnel,
    ):
        assert tunnel.recv(timeout=30)


def test_a_page_at_a_foreign_name_says_where_it_is(weigher):
    with shown(weigher) as page:
        port = int(page.url.rpartition(":")[2])
        for host, status, words in [
            ("127.0.0.1", 200, "<html"),
            ("elsewhere.example", 403, f"open {page.url}"),
        ]:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
            connection.request("GET", "/", headers={"Host": f"{host}:{port}"})
            answer = connection.getresponse()
            assert answer.status == status
            assert words in answer.read().decode()
            connection.close()


def test_names_of_this_machine_are_known_however_it_spells_them(monkeypatch):
    monkeypatch.setattr("socket.gethostname", lambda: "Robot-PC.cell")
    monkeypatch.setattr("socket.getfqdn", lambda: "robot-pc.cell.example")
    names = own_names("0.0.0.0")
    for host in ("robot-pc.cell", "robot-pc.local", "robot-pc.cell.example", "localhost"):
        assert is_own_host(f"{host}:8080", names, "192.0.2.2")
    for host in ("192.0.2.2", "[::ffff:192.0.2.2]"):
        assert is_own_host(f"{host}:8080", names, "::ffff:192.0.2.2")
    for host in ("192.0.2.20", "robot-pc.elsewhere.example", "local", "", "[::1", "[fd00::2]"):
        assert not is_own_host(f"{host}:8080", names, "192.0.2.2")
    assert not is_own_host("robot-pc.cell:8080", own_names("127.0.0.1"), "127.0.0.1")


def test_servers_of_others_are_left_as_they_are():
    from websockets.asyncio import server

    plain = server.serve
    started = []

    async def handler(connection):
        """Of a server that has nothing to do with the page."""

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(server, "serve", lambda *_, **options: started.append(options))
        with own_browsers_only("127.0.0.1"):
            server.serve(handler, "127.0.0.1", 0)
            handler.__module__ = "viser.infra._infra"
            server.serve(handler, "127.0.0.1", 0)
    assert [sorted(options) for options in started] == [[], ["process_request"]]
    assert server.serve is plain


def test_the_address_of_a_page_can_be_opened(monkeypatch):
    assert page_url("127.0.0.1", 8080) == "http://127.0.0.1:8080"
    assert page_url("::1", 8080) == "http://[::1]:8080"

    def unreachable(self, address):
        raise OSError("network is unreachable")

    monkeypatch.setattr("socket.socket.connect", unreachable)
    assert page_url("0.0.0.0", 8080) == f"http://{socket.gethostname()}:8080"


def test_the_page_cannot_be_published_by_a_tunnel(weigher, monkeypatch):
    """A browser that asks for a tunnel in spite of the missing button gets none."""
    import msgspec
    from viser import _messages
    from websockets.sync.client import connect

    opened = []
    asked = threading.Event()
    monkeypatch.setattr("viser._tunnel.ViserTunnel.__init__", lambda *_: opened.append(1))
    with shown(weigher) as page:
        own = type(page._server).request_share_url

        def asking(server):
            assert own(server) is None
            asked.set()

        monkeypatch.setattr(type(page._server), "request_share_url", asking)
        version = f"viser-v{viser.__version__}"
        place = page.url.replace("http", "ws")
        with connect(place, origin=page.url, subprotocols=[version], max_size=None) as client:
            camera = _messages.ViewerCameraMessage(
                (1.0, 0.0, 0.0, 0.0), (1.0,) * 3, 1.0, 0.1, 10.0, 100, 100, (0.0,) * 3, (0.0,) * 3
            )
            for message in (camera, _messages.ShareUrlRequest()):
                client.send(msgspec.msgpack.encode(message.as_serializable_dict()))
            assert asked.wait(20)
    assert not opened


def test_old_rows_are_grey_and_nothing_can_be_set(weigher, monkeypatch):
    snapshot = weigher.snapshot()
    fresh = answer_html(snapshot, 0.01)
    old = answer_html(snapshot, 0.01, age_s=12.0)
    assert "no rows for 12 s" in old
    assert 'class="sy old"' in old
    assert "chip good" not in old
    assert "no rows" not in fresh
    said = []
    monkeypatch.setattr("steelyard.live._page._say", lambda client, *words: said.append(words))
    with shown(weigher, UrController("127.0.0.1")) as page:
        page.show(snapshot)
        page._received_s = time.monotonic() - 12.0
        page._ask(SimpleNamespace(client=SimpleNamespace()))
        page._write(snapshot, ())
        assert page._button.disabled
    assert said == [("The payload cannot be set now", "no rows came for 12 s: the payload is old")]


@in_a_browser
def test_curves_and_arm_of_old_rows_are_grey_and_curves_say_how_old_they_are(weigher, browser):
    grey = (
        "[...document.querySelectorAll('.uplot canvas, canvas[data-engine]')]"
        ".map(e => getComputedStyle(e))"
        ".filter(e => e.opacity < 0.5 && e.filter.includes('grayscale')).length"
    )
    ages = "[...document.querySelectorAll('.chart .age')].map(e => e.innerText)"
    with shown(weigher) as page:
        browser.visit(page.url)
        browser.wait("document.querySelectorAll('.uplot canvas').length == 4")
        assert browser.ask(grey) == 0
        assert browser.ask(ages) == []
        page._received_s = time.monotonic() - 3600.0
        browser.wait(f"{ages}.length == 4")
        assert all(age.startswith("36") and age.endswith(" s old") for age in browser.ask(ages))
        assert browser.ask(grey) == 5  # four charts and the arm
        page._received_s = float("inf")
        browser.wait(f"{grey} == 0")
        assert browser.ask(ages) == []
        browser.visit("about:blank")


def test_a_payload_that_has_changed_since_the_question_is_not_sent(weigher, monkeypatch):
    said = []
    monkeypatch.setattr("steelyard.live._page._say", lambda client, *words: said.append(words))
    sent = SimpleNamespace(new=ControllerPayload(weigher.payload().mass + 1.0))
    with shown(weigher, UrController("127.0.0.1")) as page:
        page._send(SimpleNamespace(), sent)
        page._received_s = time.monotonic() - 12.0
        page._send(SimpleNamespace(), sent)
    (changed, old) = said
    assert changed[0] == old[0] == "The payload was not set"
    assert "has changed since the question, and nothing was sent" in changed[1]
    assert "no rows came for 12 s" in old[1]


def test_a_controller_with_another_payload_is_a_warning():
    payload = weighed(2.5)
    near = ControllerPayload(2.51, (0.002, -0.002, 0.051))
    assert mismatch_words(payload, near) == ""
    assert mismatch_words(payload, near._replace(cog=(0.001, -0.002, 0.095))) == (
        "The controller's centre of mass is 45 mm from the weighed one, outside its interval."
    )
    assert mismatch_words(payload, None) == ""
    words = mismatch_words(payload, ControllerPayload(1.0))
    assert words == "The controller is set to 1.000 kg, outside 2.500 ± 0.049 kg."


def test_beyond_this_machine_the_page_shows_and_stops_and_sets_nothing(weigher, monkeypatch):
    source = UrController("127.0.0.1")
    stopped, said = [], []
    report = StopReport(RestState.NOT_KNOWN, reason="ur://arm: this is not RTDE")
    monkeypatch.setattr("steelyard.live._page._say", lambda client, *words: said.append(words))
    monkeypatch.setattr(
        "steelyard.live._page.stop",
        lambda arm: stopped.append(arm) or report,
    )
    with shown(weigher, source, host="0.0.0.0") as page:
        assert page._controller is None
        assert page._button is None
        page._stop(SimpleNamespace(client=SimpleNamespace()))
    assert stopped == [source]
    title, words = said[0]
    assert title == "Not known"
    assert words == (
        "It is not known whether the arm moves (ur://arm: this is not RTDE): look at it."
    )
    with shown(weigher, source) as page:
        assert page._controller is source


def test_what_a_page_needs_is_named(weigher, monkeypatch):
    with pytest.raises(SourceFailed, match=r"no page can be served at '192\.0\.2\.1': "):
        SnapshotPage(weigher.view, ReplaySource("log.parquet"), host="192.0.2.1")
    monkeypatch.setitem(sys.modules, "viser", None)
    with pytest.raises(MissingExtra, match=r"this needs viser: pip install 'steelyard\[live\]'"):
        SnapshotPage(weigher.view, ReplaySource("log.parquet"))


@pytest.mark.thorough
def test_a_page_process_says_what_the_weigher_would_and_ends_with_it(weigher):
    with LivePage(weigher.setup, ReplaySource("log.parquet"), PageOptions(port=0)) as page:
        page.attach(weigher)
        snapshots = [*page.look(False), *page.look(True)]
        process = page._process
    ours = weigher.snapshot()
    assert not process.is_alive()
    assert snapshots[-1].payload.mass == ours.payload.mass
    assert np.array_equal(snapshots[-1].payload.covariance, ours.payload.covariance)
    assert snapshots[-1].next_step == ours.next_step


@pytest.mark.thorough
def test_a_page_that_cannot_be_served_is_one_clear_line(weigher):
    with pytest.raises(SourceFailed, match=r"no page can be served at '192\.0\.2\.1': "):
        LivePage(weigher.setup, ReplaySource("log.parquet"), PageOptions(host="192.0.2.1"))


def test_no_rows_wait_while_a_page_starts(weigher, monkeypatch):
    """A stream that is open meanwhile would fill its queue."""
    open_now = []

    class Watched(ReplaySource):
        def connect(self):
            connection = SimpleNamespace(
                columns=COLUMNS, version=(), wrench_convention=None, texts=lambda: ()
            )
            connection.read = lambda: time.sleep(0.01) or ()
            connection.close = lambda: open_now.count(connection) and open_now.remove(connection)
            open_now.append(connection)
            return connection

    @contextmanager
    def starting(setup, source, options):
        assert not open_now
        yield SimpleNamespace(url="http://127.0.0.1:1", starting=True)

    monkeypatch.setattr("steelyard.live.LivePage", starting)
    source = Watched("log.parquet")
    with opened_page("0", source, lambda stream: weigher.setup, history_file=None) as page:
        assert page.starting


@pytest.mark.thorough
def test_the_verb_opens_a_page_and_says_where(weigher, arm, tmp_path):
    weigher.setup.model.save(tmp_path / "model.json")
    write(replace(run_of(arm, 1), tau=None).between(0.0, 1.5), tmp_path / "log.npz")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        words = (
            "track",
            "replay:log.npz",
            "--model",
            "model.json",
            "--page",
            port,
            "--json",
        )
        done = steelyard(*words, cwd=tmp_path)
    assert done.stdout.startswith("{"), done
    assert json.loads(done.stdout)["rows"] > 150
    assert "The page: http://127.0.0.1:" in done.stderr
    assert f":{port}" not in done.stderr
