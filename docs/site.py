"""The reference as a site: a page for every room that users import, and the guide.

    python docs/site.py FOLDER

Signatures and docstrings are read from the imported package, so functions that are made from
tables have their pages as well.
"""

from __future__ import annotations

import importlib
import inspect
import re
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pdoc
import pdoc.render

HERE = Path(__file__).resolve().parent
ROOMS = (
    "rune",
    "rune.numpy",
    "rune.numpy.linalg",
    "rune.numpy.fft",
    "rune.lax",
    "rune.lax.linalg",
    "rune.scipy",
    "rune.scipy.cluster.vq",
    "rune.scipy.fft",
    "rune.scipy.integrate",
    "rune.scipy.interpolate",
    "rune.scipy.linalg",
    "rune.scipy.ndimage",
    "rune.scipy.optimize",
    "rune.scipy.signal",
    "rune.scipy.signal.windows",
    "rune.scipy.sparse.linalg",
    "rune.scipy.spatial.distance",
    "rune.scipy.spatial.transform",
    "rune.scipy.special",
    "rune.scipy.stats",
    "rune.nn",
    "rune.nn.initializers",
    "rune.extend",
    "rune.data",
    "rune.optim",
    "rune.random",
    "rune.tree",
    "rune.tree_util",
    "rune.debug",
    "rune.checkify",
    "rune.image",
    "rune.ref",
    "rune.sparse",
    "rune.flatten_util",
    "rune.test_util",
    "rune.profiler",
    "rune.errors",
    "rune.checkpoint_policies",
    "rune.sharding",
)
GUIDE = ("guide", ".", "decisions")
UNLISTED = ("plan", "plan_scalars")  # the state of the work, for those who do it


def room(name: str) -> ModuleType:
    """The module that users know by this name."""
    parent, _, last = name.rpartition(".")
    if not parent:
        return importlib.import_module(name)
    found = getattr(room(parent), last, None)
    return found if found is not None else importlib.import_module(name)


def public_names(module: ModuleType) -> list[str]:
    """`__all__`, or what the module itself defines and re-exports; modules are rooms, not names."""
    declared = getattr(module, "__all__", None)
    if declared is not None:
        return sorted(n for n in declared if not inspect.ismodule(getattr(module, n)))
    return sorted(name for name, value in vars(module).items() if _is_public(name, value))


def _is_public(name: str, value: Any) -> bool:
    if name.startswith("_") or inspect.ismodule(value) or name == "annotations":
        return False
    return (getattr(value, "__module__", None) or "rune").startswith("rune")


def members() -> Iterator[tuple[str, str, Any]]:
    """(room, name, object) of everything public."""
    for name in ROOMS:
        found = room(name)
        for member in public_names(found):
            yield name, member, getattr(found, member)


def pages() -> list[Path]:
    """The written pages, folder after folder."""
    found = (p for folder in GUIDE for p in sorted((HERE / folder).glob("*.md")))
    return [p for p in found if p.stem not in UNLISTED]


def build(folder: Path) -> None:
    """Write the site into a folder."""
    for name in ROOMS:
        _show(name, room(name))
    pdoc.render.configure(docformat="markdown", footer_text="rune", show_source=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # annotations of which only type checkers know the names
        pdoc.pdoc(*ROOMS, output_directory=folder)
    for page in pages():
        target = folder / page.relative_to(HERE).with_suffix(".html")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(_as_html(page))
    (folder / "index.html").write_text(_index())


def _show(name: str, module: ModuleType) -> None:
    """Give a room what pdoc looks for: all names, lazy ones too, where they are imported from."""
    names = public_names(module)
    for member in names:
        setattr(module, member, getattr(module, member))
    module.__all__ = names
    module.__name__ = name
    sys.modules[name] = module


_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title} · rune</title>
<style>body {{ max-width: 46rem; margin: 2rem auto; font: 1rem/1.5 sans-serif; padding: 0 1rem }}
pre {{ background: #f4f4f4; padding: .8rem; overflow: auto }}
table {{ border-collapse: collapse }} td, th {{ border: 1px solid #ccc; padding: .3rem .6rem }}
</style></head><body><p><a href="{home}">rune</a></p>
{body}
</body></html>
"""


def _as_html(page: Path) -> str:
    """A written page; its links to pages and to rooms of the package lead to theirs."""
    home = "../" * (len(page.relative_to(HERE).parts) - 1)
    text = re.sub(
        r"\[([^\]]*)\]\((?!https?:|#)([^)#]+)(#[^)]*)?\)",
        lambda link: _linked(page, home, *link.groups("")),
        page.read_text(),
    )
    body = pdoc.render_helpers.to_html(text)
    return _PAGE.format(title=page.stem, home=f"{home}index.html", body=body)


def _linked(page: Path, home: str, text: str, target: str, anchor: str) -> str:
    """A link as the site has it: of files that are no pages there, the text alone."""
    found = (page.parent / target).resolve()
    if found in pages():
        return f"[{text}]({target.removesuffix('.md')}.html{anchor})"
    place = found.relative_to(HERE.parent).with_suffix("").as_posix()
    return f"[{text}]({home}{place}.html)" if place.replace("/", ".") in ROOMS else text


def _index() -> str:
    """The first page: every room, and every written page by its heading."""
    rooms = [f"- [{name}]({name.replace('.', '/')}.html)" for name in ROOMS]
    written = [
        f"- [{page.read_text().splitlines()[0].lstrip('# ')}]({page.relative_to(HERE).with_suffix('.html').as_posix()})"
        for page in pages()
        if page.parent.name != "decisions" or page.stem == "README"
    ]
    text = "\n".join(["# rune", "", "## Guide", "", *written, "", "## Reference", "", *rooms])
    return _PAGE.format(title="reference", home="index.html", body=pdoc.render_helpers.to_html(text))


if __name__ == "__main__":
    build(Path(sys.argv[1]))
