"""The site: the written pages, and a page for every room that users import.

    python docs/site.py [FOLDER]    # else site/ beside docs/

MkDocs calls the `on_` functions (its user guide, "hooks"). Signatures and docstrings are read from
the imported package, so functions that are made from tables have their place as well.
"""

from __future__ import annotations

import inspect
import logging
import re
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from mkdocs.commands.build import build as build_site
from mkdocs.config import load_config
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
FOLDER = ROOT / "site"  # not in docs/: MkDocs refuses to write into what it reads
sys.path.insert(0, str(ROOT))  # MkDocs loads this file by its path

from docs.docstrings import markdown  # noqa: E402
from docs.notebooks import NOTEBOOKS, page_of  # noqa: E402
from docs.rooms import ROOMS, public_names, room  # noqa: E402

UNLISTED = ("plan",)  # the state of the work, for those who do it
WIDTH = 88  # of a signature
WHOLE = "the-whole-program"  # the last section of a page about an example
# A link to a file, and no picture, which begins with `!`.
LINK = re.compile(r"(?<!!)\[([^\]]*)\]\((?!https?:|#)([^)#\s]+)(#[^)]*)?\)")


def pages() -> list[Path]:
    """The written pages."""
    return [p for p in sorted(HERE.rglob("*.md")) if p.stem not in UNLISTED]


# --- the reference --------------------------------------------------------------------------------


def reference(name: str) -> str:
    """The page of a room, as Markdown."""
    module = room(name)
    listed = (_described(name, n, getattr(module, n)) for n in public_names(module))
    return "\n\n".join([f"# {name}", markdown(inspect.getdoc(module) or ""), *listed])


def _described(place: str, name: str, value: Any) -> str:
    """A name of a room: its signature, its docstring, and of a class its methods."""
    text = [f"## {name} {{ #{place}.{name} }}", *_body(name, value)]
    if inspect.isclass(value):
        for method, function in _methods(value):
            text += [f"### {name}.{method} {{ #{place}.{name}.{method} }}", *_body(method, function)]
    return "\n\n".join(text)


def _methods(value: type) -> Iterator[tuple[str, Any]]:
    for name in sorted(vars(value)):
        method = inspect.getattr_static(value, name)
        if not name.startswith("_") and (callable(method) or isinstance(method, property | classmethod | staticmethod)):
            yield name, getattr(value, name)


def _body(name: str, value: Any) -> Iterator[str]:
    if callable(value):
        yield f"```python\n{_signature(name, value)}\n```"
    if callable(value) or isinstance(value, property):
        yield markdown(inspect.getdoc(value) or "")
    else:
        yield f"`{value!r}`" if " at 0x" not in repr(value) else f"a `{type(value).__name__}`"


def _signature(name: str, value: Callable[..., Any]) -> str:
    """How a function is called; a line for each parameter where one line is too long."""
    try:
        signature = inspect.signature(value)
    except (TypeError, ValueError):
        return f"{name}(...)"
    parameters = [p.replace(default=_default(p.default)) for p in signature.parameters.values()]
    text = _plain(name + str(signature.replace(parameters=parameters)))
    if len(text) <= WIDTH:
        return text
    head, result = name + "(", "" if signature.return_annotation is signature.empty else text[text.rindex(" -> ") :]
    lines = textwrap.indent(",\n".join(_plain(str(p)) for p in parameters), "    ")
    return f"{head}\n{lines},\n){result}"


def _plain(text: str) -> str:
    """Annotations as they are written, without the quotes of those that are not evaluated."""
    return re.sub(r"ForwardRef\('([^']*)'\)|'([^']*)'", lambda m: m[1] or m[2] or "''", text)


class _Name:
    """A default by its name, where its text would be that of an address in memory."""

    def __init__(self, name: str):
        self.name = name

    def __repr__(self) -> str:
        return self.name


def _default(value: Any) -> Any:
    if value is inspect.Parameter.empty or " at 0x" not in repr(value):
        return value
    return _Name(getattr(value, "__name__", type(value).__name__))


# --- what MkDocs asks for -------------------------------------------------------------------------


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """The navigation with the reference."""
    assert config.nav is not None
    config.nav.append({"Reference": [{name: f"reference/{name}.md"} for name in ROOMS]})
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """The files with a page for every room and every notebook."""
    for name in ROOMS:
        files.append(File.generated(config, f"reference/{name}.md", content=reference(name)))
    for notebook in NOTEBOOKS:
        page = page_of(notebook)
        files.append(File.generated(config, f"notebooks/{notebook.stem}.md", content=page.markdown))
        for name, picture in page.pictures.items():
            files.append(File.generated(config, f"notebooks/{name}", content=picture))
    return files


def on_page_markdown(text: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """A page whose links to files of the repository lead to the pages that tell of them."""
    place = Path(page.file.src_uri)
    source = ROOT / place.with_suffix(".ipynb") if place.parent.name == "notebooks" else HERE / place
    linked = LINK.sub(lambda link: _linked(source, place, *link.groups("")), text)
    return "\n\n".join([linked, *_program_section(program_files(place))])


def _linked(source: Path, place: Path, text: str, target: str, anchor: str) -> str:
    """A link that stands in `source`, as the page at `place` has it; its text, if no page tells."""
    file = (source.parent / target).resolve()
    if file in pages() or not source.exists() or not file.exists():
        return f"[{text}]({target}{anchor})"
    page = page_about(file)
    if page == str(place):
        return f"[{text}](#{WHOLE})"
    return f"[{text}]({'../' * (len(place.parts) - 1)}{page})" if page else text


def page_about(file: Path) -> str | None:
    """The page that tells of a file of the repository: a room, a notebook, an example program."""
    place = file.relative_to(ROOT)
    if ".".join(place.with_suffix("").parts) in ROOMS:
        return f"reference/{'.'.join(place.with_suffix('').parts)}.md"
    if file in NOTEBOOKS:
        return str(place.with_suffix(".md"))
    if place.parts[:2] == ("examples", "llm"):
        return "programs/language-model.md"
    program = HERE / "programs" / f"{file.stem.replace('_', '-')}.md"
    return f"programs/{program.name}" if file.parent == ROOT / "examples" and program.exists() else None


def program_files(page: Path) -> list[Path]:
    """The files of the example program that a page tells of."""
    if page.parent.name != "programs":
        return []
    file = ROOT / "examples" / f"{page.stem.replace('-', '_')}.py"
    return [file] if file.exists() else sorted((ROOT / "examples" / "llm").glob("*.py"))


def _program_section(files: list[Path]) -> Iterator[str]:
    """The last section of a program's page: all of its code, folded up."""
    if files:
        yield f"## The whole program {{ #{WHOLE} }}"
    for file in files:
        code = f"```python\n{file.read_text('utf-8')}```"
        yield f'<details markdown="1"><summary>{file.relative_to(ROOT)}</summary>\n\n{code}\n\n</details>'


def configuration(folder: Path) -> MkDocsConfig:
    """How the site is written into a folder. Errors: MkDocs' own, for a folder that it refuses."""
    return load_config(str(ROOT / "mkdocs.yml"), site_dir=str(folder), strict=True)


def build(folder: Path) -> None:
    """Write the site into a folder. Errors: MkDocs' own, for a link that leads nowhere."""
    logging.getLogger("mkdocs").addHandler(logging.StreamHandler())  # which says what is wrong
    build_site(configuration(folder))


if __name__ == "__main__":
    build(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER)
