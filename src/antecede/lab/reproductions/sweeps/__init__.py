"""Sweeps of a user's simulation configuration."""

from typing import TYPE_CHECKING

from antecede.lazy import lazy_names

if TYPE_CHECKING:
    from antecede.lab.reproductions.sweeps.findings import table_csv
    from antecede.lab.reproductions.sweeps.folder import TABLE, check_same_grid
    from antecede.lab.reproductions.sweeps.sweep import Sweep, read_sweep, sweep_study
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "findings": "table_csv",
            "folder": "TABLE check_same_grid",
            "sweep": "Sweep read_sweep sweep_study",
        },
    )
