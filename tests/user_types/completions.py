"""The completions of pyright's language server after a dot: the names that an editor shows.

    python -m tests.user_types.completions jax FOLDER      rewrites the stored names of jax
    python -m tests.user_types.completions rune FOLDER     prints how many rune has beside them

FOLDER has the packages (site-packages), of jax 0.10.2 for the stored names.
Source: Language Server Protocol 3.17, "Completion Request".
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

STORED = Path(__file__).parent / "jax_completions_0_10_2.json"
IMPORTS = {
    "jax": "import jax as np_of, jax.numpy as np\nfrom jax import jit, lax, nn, random\n",
    "rune": "import rune as np_of, rune.numpy as np\nfrom rune import jit, lax, nn, random\n",
}
BEGINNING = """
def f(x: np_of.Array) -> np_of.Array:
    return x
x = f(np.ones(3))
"""
PLACES = ("np", "np.linalg", "np.fft", "x", "x.at[0]", "jit(f)", "random", "nn", "lax", "np_of", "np_of.tree")


class Server:
    """A language server that talks over its standard input and output."""

    def __init__(self, process: subprocess.Popen[bytes]):
        self._process, self._count = process, 0

    def notify(self, method: str, params: Mapping[str, object]) -> None:
        """Say something that has no answer."""
        self._send({"method": method, "params": params})

    def ask(self, method: str, params: Mapping[str, object]) -> Any:
        """The answer to a question; questions of the server are answered with nothing."""
        self._count += 1
        self._send({"id": self._count, "method": method, "params": params})
        while (message := self._receive()).get("id") != self._count or "method" in message:
            if "id" in message:
                items = message.get("params", {}).get("items", [])
                self._send({"id": message["id"], "result": [None] * len(items)})
        return message["result"]

    def _send(self, message: Mapping[str, object]) -> None:
        text = json.dumps({"jsonrpc": "2.0", **message}).encode()
        assert self._process.stdin is not None
        self._process.stdin.write(b"Content-Length: %d\r\n\r\n%b" % (len(text), text))
        self._process.stdin.flush()

    def _receive(self) -> dict[str, Any]:
        stream = self._process.stdout
        assert stream is not None
        length = 0
        while line := stream.readline().strip():
            name, _, value = line.partition(b":")
            length = int(value) if name.lower() == b"content-length" else length
        assert length, "the language server has ended"
        return json.loads(stream.read(length))


@contextmanager
def serving(folder: Path, packages: Sequence[Path]) -> Iterator[Server]:
    """A server for files of a folder, with the packages of other folders installed."""
    packages_folder = folder / "env" / "lib" / "python3.11" / "site-packages"
    packages_folder.mkdir(parents=True)
    (packages_folder / "others.pth").write_text("\n".join(map(str, packages)))
    settings = {"venvPath": str(folder), "venv": "env", "pythonVersion": "3.11"}
    (folder / "pyrightconfig.json").write_text(json.dumps(settings))
    command = [sys.executable, "-c", "from pyright.langserver import main; main('--stdio')"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    try:
        server = Server(process)
        capabilities = {"workspace": {"configuration": False}}
        root = {"uri": folder.as_uri(), "name": "user"}
        server.ask(
            "initialize",
            {"processId": None, "rootUri": folder.as_uri(), "workspaceFolders": [root], "capabilities": capabilities},
        )
        server.notify("initialized", {})
        yield server
    finally:
        process.kill()
        process.communicate()


def offered(library: str, packages: Sequence[Path], places: Sequence[str] = PLACES) -> dict[str, list[str]]:
    """The public names that are offered behind each place."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        file = folder / "user.py"
        beginning = IMPORTS[library] + BEGINNING
        lines = [*beginning.splitlines(), *(f"{place}." for place in places)]
        file.write_text("\n".join(lines))
        with serving(folder, packages) as server:
            document = {"uri": file.as_uri(), "languageId": "python", "version": 1, "text": file.read_text()}
            server.notify("textDocument/didOpen", {"textDocument": document})
            first = len(lines) - len(places)
            answers = [
                server.ask(
                    "textDocument/completion",
                    {
                        "textDocument": {"uri": file.as_uri()},
                        "position": {"line": first + n, "character": len(place) + 1},
                    },
                )
                for n, place in enumerate(places)
            ]
    return {place: _public(answer) for place, answer in zip(places, answers, strict=True)}


def _public(answer: Any) -> list[str]:
    items = answer["items"] if isinstance(answer, dict) else answer or []
    return sorted({item["label"] for item in items if not item["label"].startswith("_")})


def main() -> None:
    """Write the names of jax, or print a comparison with those of rune."""
    library, *packages = sys.argv[1:]
    names = offered(library, [*map(Path, packages)])
    if library == "jax":
        STORED.write_text(json.dumps(names, indent=0, sort_keys=True) + "\n")
    jax_names = json.loads(STORED.read_text())
    for place, offers in names.items():
        lacking = [name for name in jax_names[place] if name not in offers]
        counts = f"{place:12} {len(offers):4} {library}, {len(jax_names[place]):4} jax"
        print(f"{counts}; lacks {len(lacking)}: {' '.join(lacking)}")


if __name__ == "__main__":
    main()
