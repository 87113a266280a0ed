"""Execute the notebooks of the site in place: `python -m scripts.notebooks`.

What they print is kept in the files, so that the site needs no Python of the package to show them.
With `--check` nothing is written: it exits with 1, and says where, when a cell prints something
else than what is kept. A folder may be named; without one it is docs/notebooks.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import nbformat as untyped
from jupyter_client.manager import KernelManager
from nbclient import NotebookClient

nbformat: Any = untyped
Notebook = Any

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "notebooks"
CELL_TIMEOUT_S = 300
"""For one cell, kernels being compiled for the first time among what it does."""
SVG_TEXT = re.compile(r"<(?:text|title|desc)\b[^>]*>([^<]*)<")
"""What an SVG says: labels, states, tooltips, and what it is for those who do not see it."""


def execute_notebook(path: Path) -> Notebook:
    """Return a notebook with the output of every cell; raises what a cell raises."""
    notebook = nbformat.read(path, as_version=4)
    # Sockets in a folder of their own: over TCP another process may take the port that was chosen,
    # and the default names of sockets are the same for every kernel of one folder.
    with TemporaryDirectory() as folder:
        kernel = KernelManager(kernel_name="python3", transport="ipc", ip=f"{folder}/kernel")
        try:
            client = NotebookClient(
                notebook, km=kernel, timeout=CELL_TIMEOUT_S, record_timing=False
            )
            client.coalesce_streams = True  # a cell's text in one piece, however it came
            client.execute()
        finally:
            kernel.shutdown_kernel(now=True)
    notebook.metadata.pop("language_info", None)  # it names the Python that was at hand
    return notebook


def printed(notebook: Notebook) -> list[str]:
    """Return what each cell of code printed, and the words of the pictures that it showed."""
    cells = (cell for cell in notebook.cells if cell.cell_type == "code")
    return ["".join(map(_read_text, cell.outputs)) for cell in cells]


def _read_text(output: Mapping[str, Any]) -> str:
    """Return the words of an output.

    Of a picture all that is written in it counts, and not where: curves differ by a hair from one
    machine to the next, and text in the place of the picture says again what it shows.
    """
    shown = output.get("data", {})
    words = [shown.get("text/plain", ""), *SVG_TEXT.findall(shown.get("image/svg+xml", ""))]
    return str(output.get("text", "")) + "\n".join(filter(None, words))


def find_differences(path: Path) -> list[str]:
    """Return where a notebook prints something else than what is kept in it, in words."""
    kept, now = printed(nbformat.read(path, as_version=4)), printed(execute_notebook(path))
    pairs = enumerate(zip(kept, now, strict=True), start=1)
    return [f"{path.name}, cell of code {n}: {b!r}, kept: {a!r}" for n, (a, b) in pairs if a != b]


def main(arguments: list[str]) -> int:
    """Execute the notebooks of a folder, or check them; return the exit code."""
    check = "--check" in arguments
    folders = [Path(word) for word in arguments if word != "--check"] or [FOLDER]
    wrong = []
    for path in sorted(folders[0].glob("*.ipynb")):
        if check:
            wrong += find_differences(path)
        else:
            nbformat.write(execute_notebook(path), path)
        print(f"  {path.name}")
    print("\n".join(wrong))
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
