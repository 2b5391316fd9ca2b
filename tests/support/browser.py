"""A real browser, without a window: pages are opened, measured by JavaScript, and photographed.

Chromium is spoken to by its DevTools protocol over tornado's web socket (which ipykernel brings). It
resolves no name, so that a page shows what it is without a network.

Source: https://chromedevtools.github.io/devtools-protocol
"""

from __future__ import annotations

import asyncio
import base64
import json
import shutil
import subprocess
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tornado.websocket import WebSocketClientConnection, websocket_connect

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome") or ""
WHY_NOT = "no browser here: apt install chromium"
FLAGS = ("--headless=new", "--no-sandbox", "--no-first-run", "--disable-gpu", "--hide-scrollbars")
FLAGS += ("--remote-debugging-port=0", "--host-resolver-rules=MAP * ~NOTFOUND", "--allow-file-access-from-files")
SECONDS = 30  # for any one step
MOST_BYTES = 64 << 20  # of an answer, which may be a picture
TALLEST = 12_000  # pixels of a photograph


@dataclass(frozen=True, slots=True)
class View:
    """How a reader looks at a page: the width of the window in pixels, and the colours asked for."""

    width: int = 1200
    dark: bool = False

    @property
    def scheme(self) -> str:
        return "dark" if self.dark else "light"


LIGHT, DARK, PHONE = View(), View(dark=True), View(width=390)


@dataclass(frozen=True, slots=True)
class Shot:
    """What a page looks like in a view: the answer of a question, and a PNG."""

    answer: Any
    png: bytes


@dataclass(frozen=True, slots=True)
class Browser:
    """A running browser: where it is spoken to."""

    address: str  # http://127.0.0.1:port

    def look(self, url: str, views: Sequence[View], question: str) -> list[Shot]:
        """Open a page once, and ask it an expression of JavaScript in each view."""
        return asyncio.run(_look(self.address, url, views, question))

    def ask(self, url: str, question: str) -> Any:
        """Open a page, and give what an expression of JavaScript is there."""
        (shot,) = self.look(url, [LIGHT], question)
        return shot.answer


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


class _Page:
    """A tab: commands, and the events that came between their answers."""

    def __init__(self, socket: WebSocketClientConnection):
        self.socket, self.number = socket, 0

    async def call(self, method: str, **params: object) -> Mapping[str, Any]:
        self.number += 1
        await self.socket.write_message(json.dumps({"id": self.number, "method": method, "params": params}))
        while True:
            message = await self.hear()
            if message.get("id") == self.number:
                assert "error" not in message, f"{method}: {message['error']}"
                return message["result"]

    async def hear(self) -> Mapping[str, Any]:
        text = await asyncio.wait_for(self.socket.read_message(), SECONDS)
        assert text is not None, "the browser has gone"
        return json.loads(text)

    async def ask(self, question: str) -> Any:
        answer = await self.call("Runtime.evaluate", expression=question, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")


async def _look(address: str, url: str, views: Sequence[View], question: str) -> list[Shot]:
    request = urllib.request.Request(f"{address}/json/new?about:blank", method="PUT")
    tab = json.loads(urllib.request.urlopen(request, timeout=SECONDS).read())
    socket = await websocket_connect(tab["webSocketDebuggerUrl"], max_message_size=MOST_BYTES)
    try:
        page = _Page(socket)
        await page.call("Page.enable")
        await page.call("Page.navigate", url=url)
        while (await page.hear()).get("method") != "Page.loadEventFired":
            pass
        return [await _in_view(page, view, question) for view in views]
    finally:
        socket.close()
        urllib.request.urlopen(f"{address}/json/close/{tab['id']}", timeout=SECONDS).close()


async def _in_view(page: _Page, view: View, question: str) -> Shot:
    scheme = {"name": "prefers-color-scheme", "value": view.scheme}
    await page.call("Emulation.setEmulatedMedia", features=[scheme])
    size = {"width": view.width, "height": 900, "deviceScaleFactor": 1, "mobile": view.width < 600}
    await page.call("Emulation.setDeviceMetricsOverride", **size)
    await page.ask("document.fonts.ready.then(() => new Promise(requestAnimationFrame)).then(() => 0)")
    answer = await page.ask(question)
    height = min(TALLEST, await page.ask("document.documentElement.scrollHeight"))
    clip = {"x": 0, "y": 0, "width": view.width, "height": height, "scale": 1}
    drawn = await page.call("Page.captureScreenshot", clip=clip, captureBeyondViewport=True)
    return Shot(answer, base64.b64decode(drawn["data"]))
