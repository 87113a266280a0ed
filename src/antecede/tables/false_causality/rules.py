"""Ordering rules by name, as published and as repaired.

Source: Tsuneizumi et al., sections 4 and 5; Nakayama 2017, sections 2 and 3; the errata. The
readable predicates are in `protocols.clock_relations*` and `core.protocols.topics.relations`.

Two messages of one sender are ordered by the sender's own number in every rule but the two total
orders, as by Tsuneizumi et al.'s DelCond and Nakayama's counters.
"""

from __future__ import annotations

from typing import NamedTuple

from antecede.errors import InputError

CAUSAL, TOPIC_CAUSAL = "causal", "topic-causal"
"""Truths: happened-before; for Nakayama 2017 only pairs with a topic in common."""


class Rule(NamedTuple):
    """An ordering rule: a precedes b if all parts hold."""

    name: str
    linear: str = ""  # "<" or "<=": a's linear time against b's
    physical: str = ""
    """"sound", "surely causal", "rules 1 and 2" (which read linear time themselves), "rule 3"."""
    topics: bool = False  # less in every topic that both have and the observer subscribes to
    reads_vector: bool = False  # a is in b's causal past
    total: str = ""  # "arrival" or "timestamp": a total order by these, and nothing else
    uses_published_clock: bool = False
    """Tsuneizumi et al.'s clock as published, where causal messages can have equal times."""

    @property
    def truth(self) -> str:
        """Default truth for this rule."""
        return TOPIC_CAUSAL if self.topics else CAUSAL

    @property
    def reads_time(self) -> bool:
        """True if the rule reads physical times."""
        return bool(self.physical) or self.total == "timestamp"


_LIST = (
    # Tsuneizumi et al., 4.1: LT less; the clock is repaired, or as published.
    Rule("linear", linear="<"),
    Rule("linear:published", linear="<", uses_published_clock=True),
    # Tsuneizumi et al., 4.2: PT at least as far apart as a causal pair (repaired), or so far that
    # the first had surely arrived (the theorem, read both ways as in 5).
    Rule("physical", physical="sound"),
    Rule("physical:published", physical="surely causal"),
    # Tsuneizumi et al., 5: both (repaired), or rules 1 and 2 by the published clock.
    Rule("linear-physical", linear="<", physical="sound"),
    Rule("linear-physical:published", physical="rules 1 and 2", uses_published_clock=True),
    # Nakayama 2017, rule 1: TV less; with rule 2: and LT less, as published not more.
    Rule("tv", topics=True),
    Rule("tv-lt", topics=True, linear="<"),
    Rule("tv-lt:published", topics=True, linear="<="),
    # Nakayama 2017, rules 1 and 3: TV less, and PT as far apart as a causal pair, or as published.
    Rule("tv-pt", topics=True, physical="sound"),
    Rule("tv-pt:published", topics=True, physical="rule 3"),
    # Nakayama 2017, rule 4: all three.
    Rule("htbc", topics=True, linear="<", physical="sound"),
    Rule("htbc:published", topics=True, linear="<=", physical="rule 3"),
    # Nakayama 2017, 3: TV less, VT less; exact.
    Rule("tv-vt", topics=True, reads_vector=True),
    Rule("arrival", total="arrival"),  # at the observer
    Rule("timestamp", total="timestamp"),  # by the senders' clocks
)
RULES = {rule.name: rule for rule in _LIST}


def rule_named(name: str) -> Rule:
    """Return a rule; raise InputError for an unknown name."""
    if name not in RULES:
        raise InputError(f"unknown rule {name!r}; choose from {', '.join(RULES)}")
    return RULES[name]
