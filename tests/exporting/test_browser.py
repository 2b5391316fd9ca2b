"""A WebGPU folder in a browser: its page calls the function, compares, and shows the outcome."""

from __future__ import annotations

import functools
import http.server
import queue
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

import pytest

import rune
import rune.numpy as rnp
from tests.support.browser import CHROMIUM, WHY_NOT

FLAGS = "--headless=new --no-sandbox --disable-gpu-sandbox --enable-unsafe-webgpu --use-webgpu-adapter=swiftshader"
FLAGS += " --enable-features=Vulkan,WebGPU --no-first-run"
SECONDS = 300
# Sends the final text of the page to the server.
TELL = """<script type="module">
const report = document.getElementById("report");
const timer = setInterval(() => {
  if (report.textContent === "running") return;
  clearInterval(timer);
  fetch("/report", { method: "POST", body: report.textContent });
}, 50);
</script>
"""


class _Handler(http.server.SimpleHTTPRequestHandler):
    """Serves a folder, and receives reports."""

    reports: ClassVar[queue.Queue[str]] = queue.Queue()

    def do_POST(self) -> None:
        self.reports.put(self.rfile.read(int(self.headers["Content-Length"])).decode())
        self.send_response(204)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """The address of a folder."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(_Handler, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


def reported(folder: Path, profile: Path) -> str:
    """The final text of a folder's page."""
    page = folder / "index.html"
    page.write_text(page.read_text() + TELL)
    with served(folder) as address:
        command = [CHROMIUM, *FLAGS.split(), f"--user-data-dir={profile}", f"{address}/index.html"]
        browser = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            return _Handler.reports.get(timeout=SECONDS)
        finally:
            browser.terminate()
            browser.wait(SECONDS)


def function(x: Any, i: Any) -> Any:
    total, rows = rune.scan(lambda c, r: (c + r, rnp.tanh(c)), x[0], x)
    power = rune.while_loop(lambda s: s[0] < i, lambda s: (s[0] + 1, s[1] * 1.5, s[2] + s[1]), (0, total, total))
    return rune.nn.softmax(x), rows, power[2], rune.cond(i > 2, rnp.sin, rnp.cos, total), (x * 2).astype("bf16"), x > 0


@pytest.mark.skipif(not CHROMIUM, reason=WHY_NOT)
@pytest.mark.parametrize("sizes", [{}, {"dims": {"n": (1, 64)}, "in_dims": ("n", None)}], ids=["known", "open"])
def test_the_page_of_a_folder_agrees_with_its_vectors(tmp_path: Path, sizes: dict[str, Any]):
    x = rnp.cos(rnp.arange(35.0)).reshape(5, 7)
    rune.export.source(function, target="wgsl", name="shown")(x, 5, **sizes).save(tmp_path / "folder")

    report = reported(tmp_path / "folder", tmp_path / "profile")

    if "requestDevice" in report or "adapter" in report:
        pytest.skip(f"the browser has no WebGPU here ({report})")
    assert report.splitlines()[-1] == "ok", report
    calls = report.count("sizes: ") or 1
    assert calls >= (3 if sizes else 1)
    assert report.count("difference") == 6 * calls
