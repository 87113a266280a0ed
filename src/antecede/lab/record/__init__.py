"""Recorder: processes that exchange messages over UDP, and the trace of what they received."""

from typing import TYPE_CHECKING

from antecede.lazy import lazy_names

if TYPE_CHECKING:
    from antecede.lab.record.example_logs import Talk, record_log
    from antecede.lab.record.recorder import record, summary
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "example_logs": "Talk record_log",
            "recorder": "record summary",
        },
    )
