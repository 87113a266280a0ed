"""From a rule and stamps to what the kernels count: windows of physical time, terms."""

from __future__ import annotations

import numpy as np

from antecede.errors import LocalError
from antecede.kernels.graph import Ints
from antecede.meter.kernels.terms import ANY, FAR, LESS, NOT_MORE, Facts, Plan
from antecede.meter.rules import Rule
from antecede.meter.stamps import Limits, Stamps

_LINEAR = {"": ANY, "<": LESS, "<=": NOT_MORE}


def facts_of(stamps: Stamps) -> Facts:
    """Return the messages as the kernels read them."""
    n = len(stamps.sender)
    topics = np.zeros(n, np.uint64) if stamps.topics is None else stamps.topics
    counts = np.zeros((n, 0), np.int32) if stamps.counts is None else stamps.counts
    vector = np.zeros((n, stamps.senders), np.int32) if stamps.vector is None else stamps.vector
    return Facts(stamps.sender, stamps.seq, vector, topics & np.uint64(stamps.subscription), counts)


def plan_of(stamps: Stamps, rule: Rule) -> Plan:
    """Return a rule over stamps; raises LocalError where they lack what it reads."""
    if rule.topics and (stamps.topics is None or stamps.counts is None):
        raise LocalError(f"{rule.name} reads topics: give topics and counts")
    if rule.topics and stamps.past is not None:
        raise LocalError(f"{rule.name} goes by topic vectors; declared causes give none")
    lt = stamps.lt
    if rule.printed_clock and stamps.lt_printed is not None:
        lt = stamps.lt_printed
    linear, low, high = _terms(stamps, rule)
    value = stamps.pt_us
    if rule.total:
        value = stamps.arrival if rule.total == "arrival" else _ranks(stamps)
    return Plan(lt, value, linear, low, high, rule.topics, rule.vector, bool(rule.total))


def _ranks(stamps: Stamps) -> Ints:
    """Return the place of each message by time, then sender, then number [n]."""
    order = np.lexsort((stamps.seq, stamps.sender, stamps.pt_us))
    ranks = np.empty(len(order), np.int64)
    ranks[order] = np.arange(len(order))
    return ranks


def _terms(stamps: Stamps, rule: Rule) -> tuple[Ints, Ints, Ints]:
    square = (stamps.senders, stamps.senders)
    before, after = np.full(square, -FAR, np.int64), np.full(square, FAR, np.int64)
    if rule.total:
        return _one(ANY, np.ones(square, np.int64), after)
    if not rule.physical:
        return _one(_LINEAR[rule.linear], before, after)
    if stamps.limits is None:
        raise LocalError(f"{rule.name} reads physical time: give limits of clocks and delays")
    limits = stamps.limits
    error = limits.accuracy[:, None] + limits.accuracy[None, :]
    if rule.physical == "rules 1 and 2":
        return _rules_1_and_2(error, limits)
    low = {
        "sound": limits.path - error,
        "surely causal": limits.most + error + 1,
        "rule 3": np.where(limits.least >= error, limits.least - error, limits.most + error + 1),
    }[rule.physical]
    if rule.physical == "rule 3":  # and e1.PT - e2.PT < 2 epsilon
        low = np.maximum(low, 1 - error)
    return _one(_LINEAR[rule.linear], low, after)


def _one(linear: int, low: Ints, high: Ints) -> tuple[Ints, Ints, Ints]:
    return np.array([linear], np.int64), low[None], high[None]


def _rules_1_and_2(error: Ints, limits: Limits) -> tuple[Ints, Ints, Ints]:
    """Return Tsuneizumi et al.'s printed rules: far apart in any case, nearer where linear time is
    less.

    Rule 2 is the first term; rule 1(a), for fast networks, and 1(b) differ in where the second
    begins. For groups that are not homogeneous the bounds are those of the pair (4.2).
    """
    wide = error + limits.most
    near = np.where(limits.most <= error, -wide, error + 1)
    far = np.full_like(wide, FAR)
    return np.array([ANY, LESS], np.int64), np.stack([wide + 1, near]), np.stack([far, wide])
