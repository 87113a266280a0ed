"""The notebooks of the site print what stands in them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "docs" / "notebooks"


def checked(folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "scripts.notebooks", "--check", str(folder)]
    return subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=900, check=False
    )


@pytest.mark.slow
def test_notebooks_print_what_stands_in_them() -> None:
    done = checked(FOLDER)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count(".ipynb") == len([*FOLDER.glob("*.ipynb")]) >= 3


@pytest.mark.slow
def test_a_notebook_that_prints_something_else_is_found(tmp_path: Path) -> None:
    kept = (FOLDER / "peers.ipynb").read_text()
    assert kept.count("carol reads 'lunch?' from alice") == 1
    (tmp_path / "peers.ipynb").write_text(kept.replace("carol reads 'lunch?'", "carol eats"))
    done = checked(tmp_path)
    assert done.returncode == 1
    assert "peers.ipynb, cell of code 3: \"carol reads 'lunch?' from alice" in done.stdout
