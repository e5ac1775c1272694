"""A headless Chromium, driven by its DevTools protocol over a pair of pipes: no package, no port, no network."""

from __future__ import annotations

import base64
import fcntl
import json
import os
import select
import shutil
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_PATIENCE = 180.0  # seconds; a browser on a busy machine needs many
_OPTIONS = (
    "--headless=new",
    "--remote-debugging-pipe",
    "--no-sandbox",  # containers forbid it, and all pages are our own
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-extensions",
    "--disable-sync",
    "--hide-scrollbars",
    "--no-default-browser-check",
    "--no-first-run",
    "--mute-audio",
)


def find_browser() -> str | None:
    """TRANSPL_BROWSER if it is set, else the first Chromium on the path."""
    named = os.environ.get("TRANSPL_BROWSER")
    return named or next((found for name in _NAMES if (found := shutil.which(name))), None)


class Browser:
    """One tab. What the page logs, requests or breaks is collected since the last `open`."""

    def __init__(self, to_browser: int, from_browser: int) -> None:
        self._to, self._from = to_browser, from_browser
        self._unread, self._last_id = b"", 0
        self.problems: list[str] = []
        self.requests: list[str] = []
        self._loaded = False
        self._session = self._attach()
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")

    def open(self, path: Path, *, width: int = 1280, height: int = 900, dark: bool = False, fragment: str = "") -> None:
        """Open a file and wait until it has loaded, in a window of a given size."""
        self.resize(width, height)
        self.prefer("dark" if dark else "light")
        self._go("about:blank")  # so that another fragment is a new page too
        self.call("Page.resetNavigationHistory")  # a full one drops entries that scripts made
        self.problems, self.requests = [], []
        self._go(path.absolute().as_uri() + fragment)

    def resize(self, width: int, height: int) -> None:
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )

    def prefer(self, scheme: str) -> None:
        """Light or dark."""
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def value(self, script: str) -> Any:
        """The value of an expression in the page, as JSON."""
        found = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def press(self, key: str) -> None:
        """Press and release a key, as "ArrowRight" or "Tab"."""
        code = {"Tab": 9, "ArrowLeft": 37, "ArrowRight": 39}[key]
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code)

    def picture(self, path: Path, *, whole: bool = True) -> None:
        """Save what is to be seen as png, the whole page or the window."""
        found = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole, **self._clip(whole))
        path.write_bytes(base64.b64decode(found["data"]))

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send a command of the protocol and wait for its answer."""
        return self._send(method, parameters, sessionId=self._session)

    def _go(self, url: str) -> None:
        self._loaded = False
        self.call("Page.navigate", url=url)
        self._wait_for(lambda: self._loaded)

    def _clip(self, whole: bool) -> dict[str, Any]:
        if not whole:
            return {}
        size = self.call("Page.getLayoutMetrics")["cssContentSize"]
        return {"clip": {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}}

    def _attach(self) -> str:
        target = self._send("Target.createTarget", {"url": "about:blank"})["targetId"]
        return self._send("Target.attachToTarget", {"targetId": target, "flatten": True})["sessionId"]

    def _send(self, method: str, parameters: dict[str, Any], **session: str) -> dict[str, Any]:
        self._last_id += 1
        wanted, answers = self._last_id, []
        message = {"id": wanted, "method": method, "params": parameters, **session}
        os.write(self._to, json.dumps(message).encode() + b"\0")
        self._wait_for(
            lambda: bool(answers), lambda found: answers.append(found) if found.get("id") == wanted else None
        )
        assert "error" not in answers[0], f"{method}: {answers[0].get('error')}"
        return answers[0]["result"]

    def _wait_for(self, done: Any, look_at: Any = lambda found: None) -> None:
        deadline = time.monotonic() + _PATIENCE
        while not done():
            for found in self._read(deadline):
                self._note(found)
                look_at(found)

    def _read(self, deadline: float) -> Iterator[dict[str, Any]]:
        ready, _, _ = select.select([self._from], [], [], max(0.0, deadline - time.monotonic()))
        received = os.read(self._from, 1 << 20) if ready else b""
        if not received:
            raise TimeoutError("the browser does not answer")
        *whole, self._unread = (self._unread + received).split(b"\0")
        yield from map(json.loads, whole)

    def _note(self, found: dict[str, Any]) -> None:
        method, about = found.get("method"), found.get("params", {})
        if method == "Page.loadEventFired":
            self._loaded = True
        elif method == "Network.requestWillBeSent":
            self.requests.append(about["request"]["url"])
        elif method == "Runtime.exceptionThrown":
            self.problems.append(str(about["exceptionDetails"]))
        elif method == "Runtime.consoleAPICalled" and about["type"] in ("error", "warning", "assert"):
            self.problems.append(str(about["args"]))
        elif method == "Log.entryAdded" and about["entry"]["level"] in ("error", "warning"):
            self.problems.append(about["entry"]["text"])


@contextmanager
def browser(executable: str, home: Path) -> Iterator[Browser]:
    """Start a browser whose own files are in `home`, and end it with everything it started."""
    to_browser, from_browser, process = _start(executable, home)
    try:
        yield Browser(to_browser, from_browser)
    finally:
        os.close(to_browser)
        os.close(from_browser)
        with suppress(ProcessLookupError):
            os.killpg(process, signal.SIGKILL)
        os.waitpid(process, 0)


def _start(executable: str, home: Path) -> tuple[int, int, int]:
    """The browser reads commands from its file 3 and writes to its file 4."""
    (its_input, ours_out), (ours_in, its_output) = _high_pipe(), _high_pipe()
    silent = [(os.POSIX_SPAWN_OPEN, stream, os.devnull, os.O_RDWR, 0) for stream in (0, 1, 2)]
    ends = [(os.POSIX_SPAWN_DUP2, its_input, 3), (os.POSIX_SPAWN_DUP2, its_output, 4)]
    arguments = [executable, *_OPTIONS, f"--user-data-dir={home / 'profile'}"]
    environment = {**os.environ, "HOME": str(home)}
    process = os.posix_spawn(executable, arguments, environment, file_actions=[*silent, *ends], setpgroup=0)
    os.close(its_input)
    os.close(its_output)
    return ours_out, ours_in, process


def _high_pipe() -> tuple[int, int]:
    """A pipe whose ends are none of the files 0 to 4."""
    ends = os.pipe()
    high = [fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in ends]
    for end in ends:
        os.close(end)
    return high[0], high[1]
