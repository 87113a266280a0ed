"""Built-in protocols by name: title, source, variants and costs. Imports are lazy."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any, NamedTuple

from antecede.core.protocols.base import Protocol
from antecede.errors import LocalError

_DEFECTIVE = "as-published"
_NO_NULLS = "no-null-messages"


class ProtocolEntry(NamedTuple):
    """A built-in protocol."""

    name: str
    title: str
    source: str
    """Paper and section."""
    module: str
    factory: str
    """Name in the module: the class, or the function that makes all processes of a system."""
    variants: Mapping[str, Mapping[str, Any]] = {}
    """Variant name -> keyword arguments."""
    flat: bool = True
    """True: a class, `factory(me, members, **options)`. False: a function that makes all roles."""
    family: str = ""
    """Family of entries that share code; mutants are checked with the whole family."""
    overhead: str = ""
    """Control information of a message, as O(): n members, l dependencies (see `SYMBOLS`)."""
    storage: str = ""
    """Ordering state of a member, as O()."""
    errata: Mapping[str, str] = {}
    """Variants with a published defect: their check must fail -> erratum of docs/errata.md."""
    page: str = ""
    """Page of docs/protocols without .md; empty: the protocol's name."""

    @property
    def defective(self) -> tuple[str, ...]:
        """Variants that reproduce a published defect."""
        return tuple(self.errata)

    def load(self) -> Any:
        """Return the class or function that makes the processes of this protocol."""
        return getattr(importlib.import_module(self.module), self.factory)

    def options(self, variant: str = "") -> Mapping[str, Any]:
        """Return the keyword arguments of a variant. Raises LocalError for an unknown variant."""
        if not variant:
            return {}
        if variant not in self.variants:
            known = ", ".join(self.variants) or "none"
            raise LocalError(f"{self.name} has no variant {variant!r}; choose from {known}")
        return self.variants[variant]


SYMBOLS: Mapping[str, str] = {
    "n": "members",
    "l": "immediate dependencies of a message, at most n - 1",
    "e": "peers and super peers of the external group (l in Evropeytsev et al. 2016)",
    "g": "gaps in the arrived numbers",
    "q": "messages held back",
    "h": "topics of a message",
    "t": "topics in the system",
    "c": "members whose entry changed since the sender's previous message",
    "d": "destinations of a message",
    "u": "messages not known to be stable",
}
"""Meaning of the letters in `Entry.overhead` and `Entry.storage`."""

_PACKAGE = "antecede.core.protocols."
_CLOCK_VARIANTS: Mapping[str, Mapping[str, Any]] = {
    "bound": {"delivery": "bound"},
    "recovery": {"retry_s": 2.0},
    "bound-recovery": {"delivery": "bound", "retry_s": 2.0, "recovery_s": 20.0},
}
ENTRIES: Mapping[str, ProtocolEntry] = {
    entry.name: entry
    for entry in (
        ProtocolEntry(
            "unordered",
            "no order",
            "Sahai et al. 2020, Message ordering",
            _PACKAGE + "basic.unordered",
            "Unordered",
            overhead="O(1)",
            storage="O(n + g)",
        ),
        ProtocolEntry(
            "fifo",
            "FIFO order",
            "Sahai et al. 2020, Message ordering",
            _PACKAGE + "basic.fifo",
            "Fifo",
            overhead="O(1)",
            storage="O(n + g)",
        ),
        ProtocolEntry(
            "bss",
            "causal order by vector clocks (Birman, Schiper, Stephenson)",
            "Sahai et al. 2020, Birman-Schiper-Stephenson Protocol",
            _PACKAGE + "vector.bss",
            "Bss",
            {"differences": {"differences": True}, _DEFECTIVE: {"as_published": True}},
            family="vectors",
            errata={_DEFECTIVE: "E14"},
            overhead="O(n)",
            storage="O(n)",
        ),
        ProtocolEntry(
            "idr",
            "causal order by immediate dependencies",
            "Evropeytsev et al. 2016, section 3.2 (the comparator), errata",
            _PACKAGE + "vector.idr",
            "Idr",
            overhead="O(l)",
            storage="O(n + l)",
        ),
        ProtocolEntry(
            "hierarchical",
            "causal order through super peers, by bit vectors",
            "Evropeytsev et al. 2016, section 3.1",
            _PACKAGE + "hierarchical.roles",
            "hierarchical",
            {
                "no-pruning": {"pruning": "none"},
                "acknowledging": {"ack_after": 1},
                "published-pruning": {"pruning": "published"},
                "listing6": {"as_published": ("listing6",)},
                "listing12": {"as_published": ("listing12",)},
            },
            flat=False,
            errata={"published-pruning": "E6", "listing6": "E2", "listing12": "E3"},
            overhead="O(n) bits inside, O(e) pairs + O(n) bits outside",
            storage="O(n) bits inside, O(e) + O(n) bits outside",
        ),
        ProtocolEntry(
            "sb",
            "semantic order: a reply after the message it replies to",
            "Bhavanasi and Iyer, section IV",
            _PACKAGE + "reply.sb",
            "Sb",
            {
                "several-parents": {"several_parents": True},
                "drop": {"on_missing_parent": "drop", "patience_s": 5.0},
                "deliver": {
                    "several_parents": True,
                    "on_missing_parent": "deliver",
                    "patience_s": 5.0,
                },
                "refusing": {"store_limit": 2},
                "dropping": {"store_limit": 2, "overflow": "drop"},
                "small-store": {"several_parents": True, "store_limit": 3, "overflow": "deliver"},
                "algorithm-1": {"as_published": "algorithm-1"},
                "algorithm-2": {"as_published": "algorithm-2"},
            },
            errata={"algorithm-1": "E39", "algorithm-2": "E40"},
            overhead="O(1)",
            storage="O(n + g + q)",
        ),
        ProtocolEntry(
            "ses",
            "causal order for chosen recipients (Schiper, Eggli, Sandoz)",
            "Sahai et al. 2020, Schiper-Eggli-Sandoz Protocol",
            _PACKAGE + "multicast.ses",
            "Ses",
            {
                _DEFECTIVE: {"as_published": True},
                "overwriting": {"as_published": "overwriting"},
                "unicast-rule": {"as_published": "unicast-rule"},
            },
            errata={_DEFECTIVE: "E17", "overwriting": "E18", "unicast-rule": "E19"},
            overhead="O(n^2)",
            storage="O(n^2)",
        ),
        ProtocolEntry(
            "sent",
            "causal order for chosen recipients by a matrix (Raynal, Schiper, Toueg)",
            "Sahai et al. 2020, Matrix Time; errata",
            _PACKAGE + "multicast.rst",
            "Rst",
            overhead="O(n^2)",
            storage="O(n^2)",
        ),
        ProtocolEntry(
            "matrix",
            "causal order by matrix clocks: stability, and recovery of lost messages",
            "Sahai et al. 2020, Matrix Time",
            _PACKAGE + "matrix.matrix",
            "Matrix",
            {
                "differences": {"differences": True},
                "recovering": {"recovering": True},
                "recovering-differences": {"recovering": True, "differences": True},
            },
            overhead="O(n^2)",
            storage="O(n^2 + u n^2)",
        ),
        ProtocolEntry(
            "ds",
            "causal order by dependency sequences",
            "Evropeytsev et al. 2016, section 3.2 (the second comparator)",
            _PACKAGE + "vector.ds",
            "Ds",
            family="vectors",
            overhead="O(n)",
            storage="O(n)",
        ),
        ProtocolEntry(
            "total",
            "total order by a sequencer",
            "Defago, Schiper and Urban 2004, fixed sequencer",
            _PACKAGE + "total.sequencer",
            "Sequencer",
            overhead="O(1)",
            storage="O(n + q)",
        ),
        ProtocolEntry(
            "total-agreed",
            "total order by agreed timestamps: linear time and acknowledgements",
            "Lamport 1978",
            _PACKAGE + "total.timestamps",
            "AgreedTimestamps",
            overhead="O(1)",
            storage="O(n + q)",
            page="total",
        ),
        ProtocolEntry(
            "linear",
            "causal order by linear time",
            "Tsuneizumi et al., sections 4.1 and 6",
            _PACKAGE + "clock_based.linear",
            "Linear",
            {
                **_CLOCK_VARIANTS,
                "small-buffer": {"retry_s": 2.0, "buffer_limit": 2},
                "short-memory": {"retry_s": 2.0, "keep": 1},
                "equal-times": {"as_published": ("equal-times",)},
                "dropped": {"as_published": ("dropped",), "delivery": "bound"},
                "dseq": {"as_published": ("dseq",), "delivery": "bound"},
                "exclusive-end": {"as_published": ("exclusive-end",), "retry_s": 2.0},
                _NO_NULLS: {"as_published": (_NO_NULLS,)},
            },
            family="clocks",
            errata={
                "equal-times": "E24",
                "dropped": "E35",
                "dseq": "E37",
                "exclusive-end": "E36",
                _NO_NULLS: "E38",
            },
            overhead="O(1)",
            storage="O(n + g + q)",
        ),
        ProtocolEntry(
            "physical",
            "causal order by synchronized clocks",
            "Tsuneizumi et al., sections 4.2, 5 and 6",
            _PACKAGE + "clock_based.physical",
            "Physical",
            {
                **_CLOCK_VARIANTS,
                "property-7": {"as_published": ("property-7",)},
                _NO_NULLS: {"as_published": (_NO_NULLS,)},
            },
            family="clocks",
            errata={"property-7": "E27", _NO_NULLS: "E38"},
            overhead="O(1)",
            storage="O(n + g + q)",
        ),
        ProtocolEntry(
            "linear-physical",
            "causal order by linear time, without the pairs that clocks exclude",
            "Tsuneizumi et al., sections 5 and 6",
            _PACKAGE + "clock_based.linear_physical",
            "LinearPhysical",
            {
                **_CLOCK_VARIANTS,
                "rule-1b": {"as_published": ("rule-1b",)},
                _NO_NULLS: {"as_published": (_NO_NULLS,)},
            },
            family="clocks",
            errata={"rule-1b": "E28", _NO_NULLS: "E38"},
            overhead="O(1)",
            storage="O(n + g + q)",
        ),
        ProtocolEntry(
            "tv",
            "order by topic vectors",
            "Nakayama 2017, section 2",
            _PACKAGE + "topics.protocols",
            "Tv",
            {"some-topics": {"reading": "some"}, "no-greater": {"reading": "no-greater"}},
            overhead="O(t)",
            storage="O(t + n + g + q)",
        ),
        ProtocolEntry(
            "tv-lt",
            "order by topic vectors and linear time",
            "Nakayama 2017, section 2",
            _PACKAGE + "topics.protocols",
            "TvLt",
            overhead="O(t)",
            storage="O(t + n + g + q)",
            page="tv",
        ),
        ProtocolEntry(
            "tv-pt",
            "order by topic vectors and physical time",
            "Nakayama 2017, section 2",
            _PACKAGE + "topics.protocols",
            "TvPt",
            {_DEFECTIVE: {"as_published": True}},
            errata={_DEFECTIVE: "E48"},
            overhead="O(t)",
            storage="O(t + n + g + q)",
            page="tv",
        ),
        ProtocolEntry(
            "tv-vt",
            "topic-based causal order by vector clocks: the exact reference",
            "Nakayama 2017, section 3",
            _PACKAGE + "topics.protocols",
            "TvVt",
            {_DEFECTIVE: {"as_published": True}},
            errata={_DEFECTIVE: "E51"},
            overhead="O(t + n)",
            storage="O(t + n + g + q)",
            page="tv",
        ),
        ProtocolEntry(
            "htbc",
            "topic-based causal order by topic vectors, linear and physical time",
            "Nakayama 2017, section 2",
            _PACKAGE + "topics.protocols",
            "Htbc",
            {_DEFECTIVE: {"as_published": True}},
            errata={_DEFECTIVE: "E48"},
            overhead="O(t)",
            storage="O(t + n + g + q)",
        ),
    )
}


ORDERS: Mapping[str, str] = {
    "causal": "idr is causal broadcast (used by Group(order='causal')), ses is for chosen "
    "recipients, tv-lt for topics, linear for large groups",
    "reply": "sb orders replies after their parents (used by Group(order='reply'))",
    "none": "unordered delivers each message once, on arrival (used by Group(order='none'))",
}
"""Orders of several protocols, or order names of `Group` -> the protocols to suggest."""


def of_order(name: str) -> str:
    """Return a hint if the name is that of an order instead of a protocol, else ""."""
    if name not in ORDERS:
        return ""
    return f"{name!r} is an order, not a protocol: {ORDERS[name]}; see docs/protocols/README.md"


def entry(name: str) -> ProtocolEntry:
    """Return the protocol of a name. Raises LocalError with the known names."""
    if name not in ENTRIES:
        known = of_order(name) or f"choose from {', '.join(ENTRIES)}"
        base, _, variant = name.replace(":", "/").partition("/")
        if base in ENTRIES and variant:
            known = f"variants are options: antecede check {base} --variant {variant}"
        raise LocalError(f"no protocol is called {name!r}; {known}")
    return ENTRIES[name]


def flat_class(name: str) -> type[Protocol]:
    """Return the class of a protocol with one role. Raises LocalError."""
    found = entry(name)
    if not found.flat:
        raise LocalError(f"{name} has several roles, not one class; import {found.module}")
    loaded: type[Protocol] = found.load()
    return loaded
