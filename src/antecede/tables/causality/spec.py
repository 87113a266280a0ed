"""Specifications of causal labels: key columns and names of added columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from antecede.errors import InputError
from antecede.tables.order import OrderSpec

MAX_ENTRIES = 1024  # of a label, by default: 8 KiB
_HIDDEN = ("position", "waited_for", "missing_causes", "waited_ms", "released_at")


@dataclass(frozen=True, slots=True)
class LabelSpec:
    """Arguments of `add_causal_labels`; `order` names the columns to read."""

    order: OrderSpec
    causal_label: str
    max_entries: int

    @property
    def added(self) -> tuple[str, str]:
        """Names of the added columns: the causal label and the status."""
        return self.causal_label, self.order.status


def make_label_spec(
    *,
    causal_label: str = "causal_label",
    status: str = "antecede_status",
    max_entries: int = MAX_ENTRIES,
    **ways: Any,
) -> LabelSpec:
    """Return a spec from the arguments of `add_causal_labels`. Raises InputError."""
    if not isinstance(causal_label, str) or not causal_label:
        raise InputError(f"causal_label must be a column name (text), not {causal_label!r}")
    if isinstance(max_entries, bool) or not isinstance(max_entries, int) or max_entries < 1:
        raise InputError(f"max_entries must be a whole number of at least 1, not {max_entries!r}")
    if causal_label == status:
        raise InputError(f"causal_label and status need distinct names, not {causal_label!r} twice")
    return LabelSpec(order_spec(status=status, **ways), causal_label, max_entries)


def order_spec(**ways: Any) -> OrderSpec:
    """Return an `OrderSpec` that reads these columns, and adds only a status."""
    several = {name: _to_names(ways[name]) for name in ("after", "content") if ways.get(name)}
    hidden = {name: f"__antecede_{name}" for name in _HIDDEN}
    return OrderSpec(**{**ways, **several, **hidden})


def _to_names(given: Any) -> tuple[Any, ...]:
    several = isinstance(given, Sequence) and not isinstance(given, str)
    return tuple(given) if several else (given,)


def refuse_taken(columns: Sequence[str], added: Mapping[str, str], *, fold: bool = False) -> None:
    """Raise InputError if the table already has a column to add.

    `added`: the argument that renames a column -> its name. `fold`: ignore case, as Spark.
    """
    there = {name.lower() if fold else name for name in columns}
    folded = {option: name.lower() if fold else name for option, name in added.items()}
    taken = {option: added[option] for option, name in folded.items() if name in there}
    if taken:
        how = ", ".join(f"{option}=" for option in taken)
        raise InputError(
            f"the input has a column {', '.join(taken.values())} already: rename it, or the added "
            f"one with {how}"
        )


def refuse_fixed(columns: Sequence[str], added: Sequence[str], *, fold: bool = False) -> None:
    """Raise InputError if the table already has an added column that cannot be renamed."""
    there = {name.lower() if fold else name for name in columns}
    taken = [name for name in added if name in there]
    if taken:
        raise InputError(
            f"the input has a column {', '.join(taken)} already, a name that is added "
            "here: rename it"
        )
