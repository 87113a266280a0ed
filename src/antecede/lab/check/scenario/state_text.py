"""State of a member as text, for `state` in a scenario.

A protocol may define `describe()` or `describe(names)`, which returns texts by field. Counting
protocols (BSS, IDR) are shown as vectors, as in Sahai et al. 2020; others by their attributes.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from antecede.core.clocks import LANE_BITS, VALUE_BITS
from antecede.core.protocols import CountingProtocol, Idr, MessageId, Protocol
from antecede.lab.check.harness.network import World


def describe_state(at: int, network: World, names: Mapping[int, str]) -> dict[str, str]:
    """Return the state of the member at this address as text, by field."""
    member = network.members[at]
    own = getattr(member, "describe", None)
    if own is not None and not _inherits_describe(type(member)):
        takes_names = "names" in inspect.signature(own).parameters
        fields: Mapping[Any, Any] = own(names) if takes_names else own()
        return {str(field): str(value) for field, value in fields.items()}
    if isinstance(member, CountingProtocol):
        return _describe_counts(member, names)
    return _describe_attributes(at, network, names)


def _inherits_describe(cls: type[Protocol]) -> bool:
    teller = next(base for base in cls.__mro__ if "describe" in vars(base))
    return teller.__module__.startswith("antecede.") and not cls.__module__.startswith("antecede.")


def _describe_counts(member: CountingProtocol, names: Mapping[int, str]) -> dict[str, str]:
    counts = {**member.counts, member.me: member.sent}
    vector = ", ".join(str(counts[known]) for known in sorted(counts))
    if isinstance(member, Idr):
        in_ci = [k for k in sorted(counts) if member.ci >> (k * LANE_BITS + VALUE_BITS) & 1]
        pairs = ", ".join(f"<{names[k]}, {counts[k]}>" for k in in_ci)
        return {"VT": f"({vector})", "CI": pairs or "Ø"}
    return {"C": f"({vector})"}


_HARNESS_FIELDS = ("me", "note_payload")


def _describe_attributes(at: int, network: World, names: Mapping[int, str]) -> dict[str, str]:
    def show(value: Any) -> str:
        if isinstance(value, MessageId):
            return network.find_label(at, value)
        if hasattr(value, "payload"):
            return str(value.payload)
        if isinstance(value, bool):
            return str(value).lower()
        if isinstance(value, Mapping):
            return "{" + ", ".join(f"{key(k)}: {show(item)}" for k, item in value.items()) + "}"
        if isinstance(value, set | frozenset):
            return "{" + ", ".join(sorted(map(show, value))) + "}"
        if isinstance(value, tuple | list):
            return "(" + ", ".join(map(show, value)) + ")"
        return str(value)

    def key(value: Any) -> str:
        return names.get(value, str(value)) if isinstance(value, int) else show(value)

    member = network.members[at]
    shown = {name: value for name, value in vars(member).items() if name not in _HARNESS_FIELDS}
    shown["members"] = [names[known] for known in member.members]
    return {name: show(value) for name, value in shown.items()}
