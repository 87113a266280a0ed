"""Protection of the table and page in a folder that are of another grid.

`summary.json` has the name of the scenario file, `results/results.parquet` the runs of the table.
Results outlive another grid (`store`); the table and the page do not.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.compute
import pyarrow.parquet

from antecede.errors import InputError
from antecede.formatting import counted
from antecede.lab.reproductions.framework.runs import plain_text
from antecede.lab.reproductions.framework.summary import read_summary
from antecede.lab.reproductions.sweeps.findings import source
from antecede.lab.reproductions.sweeps.sweep import OVER, Sweep, settings

pc: Any = pyarrow.compute  # its stubs know too few of the types that meet here
pq: Any = pyarrow.parquet

TABLE = "sweep.csv"
SHOWN = (TABLE, "index.html", "summary.json")
"""Files that a sweep replaces whole."""


def check_same_grid(sweep: Sweep, folder: Path) -> None:
    """Raise InputError if the sweep would lose rows of the table or page in a folder.

    The same grid may go on, and so may one with more values or seeds.
    """
    there = [name for name in SHOWN if (folder / name).exists()]
    if not there:
        return
    if what := _other_source(sweep, folder) or _lost_runs(sweep, folder):
        files = " and ".join(name for name in there if name != "summary.json") or there[0]
        raise InputError(
            f"{files} there would be replaced: {what}; name another folder or give --force",
            path=str(folder),
        )


def _other_source(sweep: Sweep, folder: Path) -> str:
    """Return in words that the folder is another file's, a study's, or of no known origin."""
    try:
        found = read_summary(folder / "summary.json").source
    except (InputError, OSError) as error:
        if (folder / "results").is_dir():
            return ""
        absent = isinstance(error, FileNotFoundError)
        return "no sweep has written them" if absent else "what wrote them cannot be read"
    return "" if found == source(sweep.path.name) else f"it was made from {found}"


def _lost_runs(sweep: Sweep, folder: Path) -> str:
    """Return in words which runs of the table that is there this grid does not have."""
    try:
        table = pq.read_table(str(folder / "results" / "results.parquet"), columns=["task"])
    except (pyarrow.ArrowException, OSError):  # the store says what it sets aside
        return ""
    own = {_identity(setting, seed) for setting in settings(sweep) for seed in sweep.seeds}
    lost = []
    for text in pc.unique(table["task"]).to_pylist():
        task = json.loads(text)
        over = {
            key.removeprefix(OVER): value
            for key, value in task["parameters"].items()
            if key.startswith(OVER)
        }
        if _identity(over, task["seed"]) not in own:
            lost.append(" ".join(f"{key}={value}" for key, value in over.items()))
            lost[-1] += f" seed {task['seed']}"
    if not lost:
        return ""
    more = f" and {counted(len(lost) - 1, 'more run')}" if len(lost) > 1 else ""
    return f"they are of another grid, with {lost[0]}{more} that this one does not have"


def _identity(setting: Mapping[str, Any], seed: int) -> str:
    """Return a text that is the same whatever the order of the keys."""
    return plain_text([setting, seed])
