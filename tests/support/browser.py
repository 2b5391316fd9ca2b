"""A real browser, without a window: pages are opened, measured by JavaScript, and photographed.

The tests talk to Chromium in its DevTools protocol. It resolves no host name, so that a page shows
what it looks like without a network.

Source: https://chromedevtools.github.io/devtools-protocol
"""

from __future__ import annotations

import base64
import json
import shutil
import socket
import subprocess
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome") or ""
WHY_NOT = "no browser here: apt install chromium"
FLAGS = ("--headless=new", "--no-sandbox", "--no-first-run", "--disable-gpu", "--hide-scrollbars")
FLAGS += ("--remote-debugging-port=0", "--host-resolver-rules=MAP * ~NOTFOUND", "--allow-file-access-from-files")
SECONDS = 300  # for any one step, on any machine
UPGRADE = (
    "GET /{path} HTTP/1.1\r\nHost: {host}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n\r\n"
)
TALLEST = 6_000  # pixels of a photograph


@dataclass(frozen=True, slots=True)
class View:
    """The reader's settings: the width of the window [px], and the preferred colours."""

    width: int = 1200
    dark: bool = False

    @property
    def scheme(self) -> str:
        return "dark" if self.dark else "light"


LIGHT, DARK, PHONE = View(), View(dark=True), View(width=390)


@dataclass(frozen=True, slots=True)
class Shot:
    """The state of a page in a view: the value of an expression, and a PNG."""

    answer: Any
    png: bytes


@dataclass(frozen=True, slots=True)
class Browser:
    """A running browser: the address of its DevTools."""

    address: str  # http://127.0.0.1:port

    def look(self, url: str, views: Sequence[View], question: str) -> list[Shot]:
        """Open a page for each view, and evaluate an expression of JavaScript there."""
        shots = []
        for view in views:
            with _opened(self.address, url, view) as page:
                shots.append(page.see(view, question))
        return shots


@contextmanager
def browser(folder: Path) -> Iterator[Browser]:
    """A browser with a profile of its own in an empty folder, until the block ends."""
    command = [CHROMIUM, *FLAGS, f"--user-data-dir={folder}", "about:blank"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    try:
        line = next(line for line in process.stderr if line.startswith("DevTools listening on"))
        yield Browser(f"http://{line.split('://')[1].split('/')[0]}")
    finally:
        process.terminate()
        process.communicate(timeout=SECONDS)


class _Socket:
    """Texts to and from the browser: a WebSocket (RFC 6455) without extensions."""

    def __init__(self, url: str):
        host, _, path = url.removeprefix("ws://").partition("/")
        name, port = host.split(":")
        self.stream = socket.create_connection((name, int(port)), SECONDS)
        self.reader = self.stream.makefile("rb")
        self.stream.sendall(UPGRADE.format(path=path, host=host).encode())
        while self.reader.readline().strip():
            pass

    def send(self, text: str) -> None:
        data = text.encode()
        size = bytes([0x80 | len(data)]) if len(data) < 126 else b"\xfe" + len(data).to_bytes(2, "big")
        self.stream.sendall(b"\x81" + size + bytes(4) + data)  # a mask of zeros changes nothing

    def receive(self) -> str:
        data, is_last = b"", False
        while not is_last:
            head, length = self.reader.read(2)
            if length > 125:
                length = int.from_bytes(self.reader.read(2 if length == 126 else 8), "big")
            data, is_last = data + self.reader.read(length), head & 0x80 != 0
        return data.decode()

    def close(self) -> None:
        self.reader.close()
        self.stream.close()


class _Page:
    """A tab: commands and their answers."""

    def __init__(self, url: str):
        self.socket, self.number = _Socket(url), 0

    def call(self, method: str, **params: object) -> Mapping[str, Any]:
        self.number += 1
        self.socket.send(json.dumps({"id": self.number, "method": method, "params": params}))
        answer = self.hear(lambda message: message.get("id") == self.number)
        assert "error" not in answer, f"{method}: {answer['error']}"
        return answer["result"]

    def hear(self, is_wanted: Callable[[Mapping[str, Any]], bool]) -> Mapping[str, Any]:
        """The next message of a kind; others are skipped."""
        return next(m for m in iter(lambda: json.loads(self.socket.receive()), None) if is_wanted(m))

    def ask(self, question: str) -> Any:
        answer = self.call("Runtime.evaluate", expression=question, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def see(self, view: View, question: str) -> Shot:
        """Evaluate the expression, and take a screenshot."""
        self.ask("document.fonts.ready.then(() => new Promise(requestAnimationFrame)).then(() => 0)")
        answer = self.ask(question)
        height = min(TALLEST, self.ask("document.documentElement.scrollHeight"))
        clip = {"x": 0, "y": 0, "width": view.width, "height": height, "scale": 1}
        screenshot = self.call("Page.captureScreenshot", clip=clip, captureBeyondViewport=True, optimizeForSpeed=True)
        return Shot(answer, base64.b64decode(screenshot["data"]))


@contextmanager
def _opened(address: str, url: str, view: View) -> Iterator[_Page]:
    """A tab with a page that is loaded: some pages choose their colours then."""
    request = urllib.request.Request(f"{address}/json/new?about:blank", method="PUT")
    with urllib.request.urlopen(request, timeout=SECONDS) as answer:
        tab = json.load(answer)
    page = _Page(tab["webSocketDebuggerUrl"])
    try:
        page.call("Page.enable")
        scheme = {"name": "prefers-color-scheme", "value": view.scheme}
        page.call("Emulation.setEmulatedMedia", features=[scheme])
        size = {"width": view.width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        page.call("Emulation.setDeviceMetricsOverride", **size)
        page.call("Page.navigate", url=url)
        page.hear(lambda message: message.get("method") == "Page.loadEventFired")
        yield page
    finally:
        page.socket.close()
        urllib.request.urlopen(f"{address}/json/close/{tab['id']}", timeout=SECONDS).close()
