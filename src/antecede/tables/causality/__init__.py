"""A vocabulary of causality for Arrow tables; `antecede.spark` has the same words for DataFrames.

`with_clocks` stamps each row; `happened_before` and `concurrent` compare two stamps; `past` and
`future` are the rows causally before and after given events; `cut` judges a global state, and
`recovery_line` is the latest consistent one made of checkpoints. `Causality` answers questions
about the events of one trace, `States` about its global states; the package itself, called with a
table, gives a `Causality`.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

from antecede.tables.causality.cuts import cut, cut_verdict
from antecede.tables.causality.global_states import States
from antecede.tables.causality.labels import STAMP, with_clocks
from antecede.tables.causality.predicates import definitely, possibly
from antecede.tables.causality.queries import Causality, Event
from antecede.tables.causality.reachability import future, past
from antecede.tables.causality.recovery_lines import recovery_line
from antecede.tables.causality.relations import concurrent, happened_before, past_size

__all__ = [
    "STAMP",
    "Causality",
    "Event",
    "States",
    "concurrent",
    "cut",
    "cut_verdict",
    "definitely",
    "future",
    "happened_before",
    "past",
    "past_size",
    "possibly",
    "recovery_line",
    "with_clocks",
]


class _Package(ModuleType):
    # So that `antecede.tables.causality(table)` reads as a question.
    def __call__(self, trace: Any, *, by: str | None = None) -> Causality:
        return Causality(trace, by=by)


sys.modules[__name__].__class__ = _Package
