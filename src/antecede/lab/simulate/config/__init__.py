"""Simulation configuration: model and TOML files."""

from typing import TYPE_CHECKING

from antecede.lazy import lazy_names

if TYPE_CHECKING:
    from antecede.lab.simulate.config.compatibility import check_fit, topologies_of
    from antecede.lab.simulate.config.file import (
        config_from,
        config_mapping,
        files_read,
        read_config,
        write_config,
    )
    from antecede.lab.simulate.config.model import (
        FASTEST_HZ,
        Clocks,
        Links,
        Partition,
        SimulationConfig,
        Special,
        Workload,
    )
    from antecede.lab.simulate.config.tables import choices
    from antecede.lab.simulate.config.values import config_with_settings, read_values
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "compatibility": "check_fit topologies_of",
            "file": "files_read read_config config_from config_mapping write_config",
            "model": "Clocks FASTEST_HZ Links Partition SimulationConfig Special Workload",
            "tables": "choices",
            "values": "read_values config_with_settings",
        },
    )
