"""The rules that are measured: which pairs each orders, by name; as published and repaired.

Source: 002, sections 4 and 5; 004, sections 2 and 3; the errata. The readable predicates are in
`protocols.clock_relations*` and `protocols.topic_relations`; here a rule is only described, and
`meter.count` counts it.

Two messages of one sender go by the sender's own number in every rule but the two total orders:
that is what 002's DelCond and 004's counters do, whatever the times say.
"""

from __future__ import annotations

from typing import NamedTuple

from antecede.errors import InputError

CAUSAL, TOPIC_CAUSAL = "causal", "topic-causal"
"""What a rule is held against: happened-before, and for 004 only pairs with a topic in common."""


class Rule(NamedTuple):
    """Which of two messages a and b comes before the other: a before b when all parts say so."""

    name: str
    meaning: str
    source: str
    linear: str = ""
    """"<" or "<=": a's linear time against b's."""
    physical: str = ""
    """"sound", "surely causal", "rules 1 and 2" (which read linear time themselves), "rule 3"."""
    topics: bool = False
    """Less in every topic that both have and the observer subscribes to."""
    vector: bool = False
    """a is in b's causal past."""
    total: str = ""
    """"arrival" or "timestamp": a total order by these, and nothing else."""
    printed_clock: bool = False
    """Linear time is that of 002's clock as printed, where causal messages can have equal times."""

    @property
    def truth(self) -> str:
        """What the rule is held against where the caller does not say."""
        return TOPIC_CAUSAL if self.topics else CAUSAL

    @property
    def timed(self) -> bool:
        """Whether it reads physical times."""
        return bool(self.physical) or self.total == "timestamp"


SUFFIX = ":published"
_LIST = (
    Rule("linear", "LT less", "002, 4.1, clock repaired", linear="<"),
    Rule(
        "linear" + SUFFIX,
        "LT less, by the clock as printed",
        "002, 4.1",
        linear="<",
        printed_clock=True,
    ),
    Rule("physical", "PT apart as a causal pair can be", "002, 4.2, repaired", physical="sound"),
    Rule(
        "physical" + SUFFIX,
        "PT apart so that the first had surely arrived",
        "002, 4.2, theorem, read both ways as in 5",
        physical="surely causal",
    ),
    Rule(
        "linear-physical",
        "LT less and PT apart as a causal pair can be",
        "002, 5, repaired",
        linear="<",
        physical="sound",
    ),
    Rule(
        "linear-physical" + SUFFIX,
        "rules 1 and 2, by the clock as printed",
        "002, 5",
        physical="rules 1 and 2",
        printed_clock=True,
    ),
    Rule("tv", "TV less", "004, rule 1", topics=True),
    Rule("tv-lt", "TV less, LT less", "004, rules 1, 2, repaired", topics=True, linear="<"),
    Rule("tv-lt" + SUFFIX, "TV less, LT <=", "004, rules 1, 2", topics=True, linear="<="),
    Rule(
        "tv-pt",
        "TV less, PT apart as a causal pair can be",
        "004, rules 1, 3, repaired",
        topics=True,
        physical="sound",
    ),
    Rule("tv-pt" + SUFFIX, "TV less, PT", "004, rules 1, 3", topics=True, physical="rule 3"),
    Rule(
        "htbc",
        "TV less, LT less, PT apart as a causal pair can be",
        "004, rule 4, repaired",
        topics=True,
        linear="<",
        physical="sound",
    ),
    Rule(
        "htbc" + SUFFIX,
        "TV less, LT <=, PT",
        "004, rule 4",
        topics=True,
        linear="<=",
        physical="rule 3",
    ),
    Rule("tv-vt", "TV less, VT less: exact", "004, 3", topics=True, vector=True),
    Rule("arrival", "arrived earlier at the observer", "total order", total="arrival"),
    Rule("timestamp", "sent earlier by the senders' clocks", "total order", total="timestamp"),
)
RULES = {rule.name: rule for rule in _LIST}


def rule_named(name: str) -> Rule:
    """Return a rule; raises InputError for a name that is none."""
    if name not in RULES:
        raise InputError(f"there is no rule {name!r}; rules: {', '.join(RULES)}")
    return RULES[name]
