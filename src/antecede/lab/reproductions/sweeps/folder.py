"""Protection of tables and pages of another grid in a sweep's folder.

`summary.json` has the name of the configuration file, `results/results.parquet` the runs of the
table. Results of another grid are kept (`store`). The table and the page are replaced.
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
from antecede.formatting import pluralize
from antecede.lab.reproductions.framework.runs import canonical_json
from antecede.lab.reproductions.framework.summary import read_summary
from antecede.lab.reproductions.sweeps.findings import describe_source
from antecede.lab.reproductions.sweeps.sweep import OVER, Sweep, iterate_settings

pc: Any = pyarrow.compute  # its stubs know too few of the types that meet here
pq: Any = pyarrow.parquet

TABLE = "sweep.csv"
REPLACED_FILES = (TABLE, "index.html", "summary.json")  # Files that a sweep replaces


def check_same_grid(sweep: Sweep, folder: Path) -> None:
    """Raise InputError if the sweep would lose rows of the table or page in a folder."""
    there = [name for name in REPLACED_FILES if (folder / name).exists()]
    if not there:
        return
    if what := _describe_other_source(sweep, folder) or _describe_lost_runs(sweep, folder):
        files = " and ".join(name for name in there if name != "summary.json") or there[0]
        raise InputError(
            f"would replace {files}: {what}; name another folder or use --force",
            path=str(folder),
        )


def _describe_other_source(sweep: Sweep, folder: Path) -> str:
    """Return a text if the folder belongs to another file, a study, or an unknown source."""
    try:
        found = read_summary(folder / "summary.json").source
    except (InputError, OSError) as error:
        if (folder / "results").is_dir():
            return ""
        absent = isinstance(error, FileNotFoundError)
        return "not written by a sweep" if absent else "summary.json is not readable"
    return "" if found == describe_source(sweep.path.name) else f"made from {found}"


def _describe_lost_runs(sweep: Sweep, folder: Path) -> str:
    try:
        table = pq.read_table(str(folder / "results" / "results.parquet"), columns=["task"])
    except (pyarrow.ArrowException, OSError):  # the store reports unreadable files
        return ""
    own = {_make_key(setting, seed) for setting in iterate_settings(sweep) for seed in sweep.seeds}
    lost = []
    for text in pc.unique(table["task"]).to_pylist():
        task = json.loads(text)
        over = {
            key.removeprefix(OVER): value
            for key, value in task["parameters"].items()
            if key.startswith(OVER)
        }
        if _make_key(over, task["seed"]) not in own:
            lost.append(" ".join(f"{key}={value}" for key, value in over.items()))
            lost[-1] += f" seed {task['seed']}"
    if not lost:
        return ""
    more = f" and {pluralize(len(lost) - 1, 'more run')}" if len(lost) > 1 else ""
    return f"made from another grid, with {lost[0]}{more} that this one does not have"


def _make_key(setting: Mapping[str, Any], seed: int) -> str:
    return canonical_json([setting, seed])
