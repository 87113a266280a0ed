"""Outputs of a run: metrics, violations, needless holds, traces."""

from typing import TYPE_CHECKING

from antecede.lazy import lazy_names

if TYPE_CHECKING:
    from antecede.lab.simulate.outputs.confidence import (
        BATCHES,
        half_width,
        half_widths,
        short_batches,
    )
    from antecede.lab.simulate.outputs.global_states import RecordedState, snapshot_name
    from antecede.lab.simulate.outputs.metrics import wait_figures
    from antecede.lab.simulate.outputs.needless_holds import delivery_waits, wait_counts
    from antecede.lab.simulate.outputs.result import Measures, Result
    from antecede.lab.simulate.outputs.timestamps import compute_timestamps, meter_figures
    from antecede.lab.simulate.outputs.trace import write_trace
    from antecede.lab.simulate.outputs.violations import FULL
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "confidence": "BATCHES half_width half_widths short_batches",
            "global_states": "RecordedState snapshot_name",
            "metrics": "wait_figures",
            "needless_holds": "delivery_waits wait_counts",
            "result": "Measures Result",
            "timestamps": "meter_figures compute_timestamps",
            "trace": "write_trace",
            "violations": "FULL",
        },
    )
