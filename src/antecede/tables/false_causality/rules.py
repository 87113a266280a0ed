"""The rules that are measured: which pairs each orders, by name; as published and repaired.

Source: Tsuneizumi et al., sections 4 and 5; Nakayama 2017, sections 2 and 3; the errata. The
readable predicates are in
`protocols.clock_relations*` and `core.protocols.topics.relations`; here a rule is only described,
and `tables.false_causality.count` counts it.

Two messages of one sender go by the sender's own number in every rule but the two total orders:
that is what Tsuneizumi et al.'s DelCond and Nakayama's counters do, whatever the times say.
"""

from __future__ import annotations

from typing import NamedTuple

from antecede.errors import InputError

CAUSAL, TOPIC_CAUSAL = "causal", "topic-causal"
"""What a rule is held against: happened-before, and for Nakayama 2017 only pairs with a topic in
common.
"""


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
    """Linear time is that of Tsuneizumi et al.'s clock as printed, where causal messages can have
    equal times.
    """

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
    Rule("linear", "LT less", "Tsuneizumi et al., 4.1, clock repaired", linear="<"),
    Rule(
        "linear" + SUFFIX,
        "LT less, by the clock as printed",
        "Tsuneizumi et al., 4.1",
        linear="<",
        printed_clock=True,
    ),
    Rule(
        "physical",
        "PT apart as a causal pair can be",
        "Tsuneizumi et al., 4.2, repaired",
        physical="sound",
    ),
    Rule(
        "physical" + SUFFIX,
        "PT apart so that the first had surely arrived",
        "Tsuneizumi et al., 4.2, theorem, read both ways as in 5",
        physical="surely causal",
    ),
    Rule(
        "linear-physical",
        "LT less and PT apart as a causal pair can be",
        "Tsuneizumi et al., 5, repaired",
        linear="<",
        physical="sound",
    ),
    Rule(
        "linear-physical" + SUFFIX,
        "rules 1 and 2, by the clock as printed",
        "Tsuneizumi et al., 5",
        physical="rules 1 and 2",
        printed_clock=True,
    ),
    Rule("tv", "TV less", "Nakayama 2017, rule 1", topics=True),
    Rule(
        "tv-lt", "TV less, LT less", "Nakayama 2017, rules 1, 2, repaired", topics=True, linear="<"
    ),
    Rule("tv-lt" + SUFFIX, "TV less, LT <=", "Nakayama 2017, rules 1, 2", topics=True, linear="<="),
    Rule(
        "tv-pt",
        "TV less, PT apart as a causal pair can be",
        "Nakayama 2017, rules 1, 3, repaired",
        topics=True,
        physical="sound",
    ),
    Rule(
        "tv-pt" + SUFFIX, "TV less, PT", "Nakayama 2017, rules 1, 3", topics=True, physical="rule 3"
    ),
    Rule(
        "htbc",
        "TV less, LT less, PT apart as a causal pair can be",
        "Nakayama 2017, rule 4, repaired",
        topics=True,
        linear="<",
        physical="sound",
    ),
    Rule(
        "htbc" + SUFFIX,
        "TV less, LT <=, PT",
        "Nakayama 2017, rule 4",
        topics=True,
        linear="<=",
        physical="rule 3",
    ),
    Rule("tv-vt", "TV less, VT less: exact", "Nakayama 2017, 3", topics=True, vector=True),
    Rule("arrival", "arrived earlier at the observer", "total order", total="arrival"),
    Rule("timestamp", "sent earlier by the senders' clocks", "total order", total="timestamp"),
)
RULES = {rule.name: rule for rule in _LIST}


def rule_named(name: str) -> Rule:
    """Return a rule; raises InputError for a name that is none."""
    if name not in RULES:
        raise InputError(f"there is no rule {name!r}; rules: {', '.join(RULES)}")
    return RULES[name]
