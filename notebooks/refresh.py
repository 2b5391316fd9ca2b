"""Execute the notebooks and keep their outputs, without what changes from run to run.

    python notebooks/refresh.py

Progress bars, times and the editor's metadata are dropped, so that a difference in a notebook is a
difference in what it says.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

FOLDER = Path(__file__).parent
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
SECONDS = 60  # of a processor, which a notebook may take
HANG_S = 600  # what takes longer hangs, on any machine


def execute(file: Path) -> Any:
    """The notebook, run from top to bottom in a fresh kernel."""
    notebook = nbformat.read(file, as_version=4)
    resources = {"metadata": {"path": str(FOLDER)}}
    NotebookClient(notebook, timeout=HANG_S, kernel_name="python3", resources=resources).execute()
    return notebook


def without_noise(notebook: Any) -> Any:
    """The notebook without progress bars, times and metadata."""
    for cell in notebook.cells:
        cell.metadata = {}
        if cell.cell_type == "code":
            cell.outputs = [o for o in cell.outputs if o.get("name") != "stderr"]
    kernel = notebook.metadata["kernelspec"]
    notebook.metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    return notebook


def main() -> None:
    """Refresh all notebooks."""
    for file in NOTEBOOKS:
        nbformat.write(without_noise(execute(file)), file)


if __name__ == "__main__":
    main()
