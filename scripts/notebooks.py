"""Execution of the site's notebooks in place: `python -m scripts.notebooks [--check] [FOLDER]`.

Outputs are stored in the files, so the site needs no Python. `--check` writes nothing and exits
with 1 if a cell prints something else than its stored output. The default folder is docs/notebooks.
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
"""Time limit of a cell, including the compilation of kernels."""
SVG_TEXT = re.compile(r"<(?:text|title|desc)\b[^>]*>([^<]*)<")
"""Texts of an SVG: labels, tooltips, descriptions."""


def execute_notebook(path: Path) -> Notebook:
    """Return a notebook with the output of every cell; raises errors of cells."""
    notebook = nbformat.read(path, as_version=4)
    # Use sockets in a separate folder: another process may take a chosen TCP port, and default
    # socket names are the same for all kernels of one folder.
    with TemporaryDirectory() as folder:
        kernel = KernelManager(kernel_name="python3", transport="ipc", ip=f"{folder}/kernel")
        try:
            client = NotebookClient(
                notebook, km=kernel, timeout=CELL_TIMEOUT_S, record_timing=False
            )
            client.coalesce_streams = True  # one text per cell
            client.execute()
        finally:
            kernel.shutdown_kernel(now=True)
    notebook.metadata.pop("language_info", None)  # depends on the Python version
    return notebook


def read_printed(notebook: Notebook) -> list[str]:
    """Return the printed text of each code cell, and the texts of its images."""
    cells = (cell for cell in notebook.cells if cell.cell_type == "code")
    return ["".join(map(_read_text, cell.outputs)) for cell in cells]


def _read_text(output: Mapping[str, Any]) -> str:
    """Return the text of an output, without positions: curves differ slightly between machines."""
    shown = output.get("data", {})
    words = [shown.get("text/plain", ""), *SVG_TEXT.findall(shown.get("image/svg+xml", ""))]
    return str(output.get("text", "")) + "\n".join(filter(None, words))


def find_differences(path: Path) -> list[str]:
    """Return the differences between printed and stored outputs as text."""
    kept, now = (
        read_printed(nbformat.read(path, as_version=4)),
        read_printed(execute_notebook(path)),
    )
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
