"""Chromium without a window, spoken to through a pipe: no port, no driver, no network."""

import contextlib
import json
import os
import select
import shutil
import subprocess
import sys
import time
from pathlib import Path

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--hide-scrollbars",
    "--remote-debugging-pipe",
)


_ON_3_AND_4 = """
import os, sys
spare = [int(fd) for fd in sys.argv[1:3]]
while min(spare) < 5:
    spare = [os.dup(fd) for fd in spare]
os.dup2(spare[0], 3)
os.dup2(spare[1], 4)
os.execv(sys.argv[3], sys.argv[3:])
"""


def chromium() -> str | None:
    """The path of Chromium or Chrome, None where there is none."""
    names = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
    return next((path for name in names if (path := shutil.which(name))), None)


class Browser:
    """One browser with one tab; commands of the DevTools protocol as method calls."""

    def __init__(self, profile: Path) -> None:
        to_browser, self._out = os.pipe()
        self._in, from_browser = os.pipe()
        words = [chromium(), *FLAGS, f"--user-data-dir={profile}", "about:blank"]
        self._process = subprocess.Popen(  # the browser speaks on descriptors 3 and 4
            [sys.executable, "-c", _ON_3_AND_4, str(to_browser), str(from_browser), *words],
            pass_fds=(to_browser, from_browser),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_browser)
        os.close(from_browser)
        self._rest, self._number, self._session, self.events = b"", 0, None, []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)[
            "sessionId"
        ]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def close(self) -> None:
        with contextlib.suppress(OSError, TimeoutError, RuntimeError):
            self._session = None
            self.call("Browser.close", seconds=5)
        os.close(self._out)
        os.close(self._in)
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def call(self, method: str, *, seconds: float = 60, **parameters):
        """The result of one command; what happens meanwhile is kept in `events`."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self._out, data) :]
        end = time.monotonic() + seconds
        while True:
            answer = self._message(end)
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
            self.events.append(answer)

    def _message(self, end: float) -> dict:
        while b"\0" not in self._rest:
            ready, _, _ = select.select([self._in], [], [], max(0.0, end - time.monotonic()))
            if not ready:
                raise TimeoutError("the browser does not answer")
            chunk = os.read(self._in, 1 << 20)
            if not chunk:
                raise RuntimeError("the browser has ended")
            self._rest += chunk
        line, _, self._rest = self._rest.partition(b"\0")
        return json.loads(line)

    def ask(self, expression: str):
        """What JavaScript in the page says."""
        found = self.call(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        if "exceptionDetails" in found:
            raise RuntimeError(found["exceptionDetails"])
        return found["result"].get("value")

    def open(
        self, path: Path, *, width: int = 1280, height: int = 900, seconds: float = 60
    ) -> None:
        """Opens a file and waits until it says that all is drawn."""
        self._set_size(width, height)
        self.events.clear()
        self.call("Page.navigate", url=path.resolve().as_uri())
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            loaded = "location.protocol == 'file:' && document.readyState == 'complete'"
            if self.ask(f"{loaded} && 'done' in document.body.dataset"):
                return
            time.sleep(0.05)
        raise TimeoutError(f"{path.name} was not drawn in {seconds} s")

    def visit(self, url: str, *, width: int = 900, height: int = 600) -> None:
        """Goes to an address; what is on the page is waited for with `wait`.

        Few pixels for each unit of length save the software that draws in 3D most of its work.
        """
        self._set_size(width, height, scale=0.25)
        self.events.clear()
        self.call("Page.navigate", url=url)

    def wait(self, expression: str, *, seconds: float = 60):
        """What JavaScript in the page says, as soon as it is not nothing."""
        end, found = time.monotonic() + seconds, None
        while not found and time.monotonic() < end:
            time.sleep(0.05)
            found = self.ask(expression)
        if not found:
            raise TimeoutError(f"the page never had {expression}")
        return found

    def resize(self, width: int, height: int = 900) -> None:
        """A window of this size, a phone's below 600 pixels; returns when plots have followed."""
        self._set_size(width, height)
        self.ask(
            "new Promise(f => requestAnimationFrame(() => requestAnimationFrame(() =>"
            " setTimeout(f, 200))))"
        )

    def _set_size(self, width: int, height: int, scale: float = 1.0) -> None:
        size = {"width": width, "height": height, "deviceScaleFactor": scale, "mobile": width < 600}
        self.call("Emulation.setDeviceMetricsOverride", **size)

    @property
    def complaints(self) -> list[str]:
        """Every error and warning of the console since the page was opened."""
        found = []
        for event in self.events:
            values = event.get("params", {})
            if event.get("method") == "Runtime.exceptionThrown":
                found.append(str(values["exceptionDetails"]))
            elif event.get("method") == "Log.entryAdded" and values["entry"]["level"] in (
                "error",
                "warning",
            ):
                found.append(values["entry"]["text"])
            elif event.get("method") == "Runtime.consoleAPICalled" and values["type"] in (
                "error",
                "warning",
            ):
                found.append(str(values["args"]))
        return found

    @property
    def requests(self) -> list[str]:
        """Addresses that the page asked for, beyond itself and what it carries."""
        found = [
            e["params"]["request"]["url"]
            for e in self.events
            if e.get("method") == "Network.requestWillBeSent"
        ]
        return [url for url in found if not url.startswith(("data:", "blob:"))]
