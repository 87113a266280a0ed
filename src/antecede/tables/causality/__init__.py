"""Causality functions for Arrow tables; `antecede.spark` has the same functions for DataFrames.

- `add_causal_labels` adds a causal label to each row; `happened_before`, `concurrent` and
  `past_size` compare labels
- `past` and `future` return the rows causally before and after given events
- `check_cut` checks a global state; `recovery_line` is the latest consistent set of checkpoints
- `Causality` answers queries about the events of one trace, `States` about its global states

The package itself, called with a table, returns a `Causality`.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

from antecede.lazy import lazy_names
from antecede.tables.causality.cuts import check_cut, summarize_cut
from antecede.tables.causality.global_states import States
from antecede.tables.causality.labels import LABEL_TYPE, add_causal_labels
from antecede.tables.causality.predicates import definitely, possibly
from antecede.tables.causality.queries import Causality, EventRef
from antecede.tables.causality.reachability import future, past
from antecede.tables.causality.recovery_lines import recovery_line
from antecede.tables.causality.relations import concurrent, happened_before, past_size

if TYPE_CHECKING:
    from antecede.tables.causality.clock_log_diagram import from_clocks
    from antecede.tables.causality.cuts import (
        ADDED,
        Positions,
        check_positions,
        compute_cut_columns,
        cut_spec,
        process_codes,
        stranger,
    )
    from antecede.tables.causality.event_graph import first_rows, tells_of_arrivals
    from antecede.tables.causality.global_states import CutVerdict, Recovery
    from antecede.tables.causality.kernels.recovery_lines import NO, UNKNOWN, YES
    from antecede.tables.causality.labels import Stamped
    from antecede.tables.causality.predicates import MOST_STATES, PredicateResult
    from antecede.tables.causality.queries import (
        CAUSES,
        CLOCKS,
        EVENTS,
        LOOK_ALIKE,
        NO_EVENTS,
        WAYS,
        Named,
        Whole,
        check_not_blank,
    )
    from antecede.tables.causality.reachability import NO_PLACE, UNLIKE, mark_reachable, not_there
    from antecede.tables.causality.recovery_lines import LINE, is_behind_line
    from antecede.tables.causality.spec import (
        MAX_ENTRIES,
        LabelSpec,
        make_label_spec,
        order_spec,
        refuse_fixed,
        refuse_taken,
    )
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "clock_log_diagram": "from_clocks",
            "cuts": (
                "ADDED Positions check_positions cut_spec compute_cut_columns process_codes "
                "stranger"
            ),
            "event_graph": "first_rows tells_of_arrivals",
            "global_states": "Recovery CutVerdict",
            "kernels.recovery_lines": "NO UNKNOWN YES",
            "labels": "Stamped",
            "predicates": "PredicateResult MOST_STATES",
            "queries": "CAUSES CLOCKS EVENTS LOOK_ALIKE NO_EVENTS Named WAYS Whole check_not_blank",
            "reachability": "NO_PLACE UNLIKE mark_reachable not_there",
            "recovery_lines": "LINE is_behind_line",
            "spec": "LabelSpec MAX_ENTRIES make_label_spec order_spec refuse_fixed refuse_taken",
        },
    )

__all__ = [
    "LABEL_TYPE",
    "Causality",
    "EventRef",
    "States",
    "add_causal_labels",
    "check_cut",
    "concurrent",
    "definitely",
    "future",
    "happened_before",
    "past",
    "past_size",
    "possibly",
    "recovery_line",
    "summarize_cut",
]


class _Package(ModuleType):
    # Makes `antecede.tables.causality(table)` callable.
    def __call__(self, trace: Any, *, by: str | None = None) -> Causality:
        return Causality(trace, by=by)


sys.modules[__name__].__class__ = _Package
