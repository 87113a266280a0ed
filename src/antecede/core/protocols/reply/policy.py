"""Policies of S_b for a full store and for parents that never arrive.

Bhavanasi and Iyer do not treat these cases. Section III.A.2 allows one parent, section IV.A.3
assumes that nothing is lost, and the footnote of VI.C assumes a large enough store.
`find_guarantee` returns the guarantee that remains under a policy.
"""

from __future__ import annotations

from typing import NamedTuple

from antecede.core.clocks import exact, up_ns
from antecede.core.protocols.base import Guarantee, Relation
from antecede.errors import LocalError

HOLD = "hold"
"""Missing parent: wait for ever (as in the source)."""
DELIVER = "deliver"
"""Deliver the message without its parent (`DeliverIncomplete`)."""
DROP = "drop"
"""Drop the message and all replies to it (`Discard`)."""
REFUSE = "refuse"
"""Full store: reject the message; the transport must offer it again."""

ALGORITHM_1 = "algorithm-1"
ALGORITHM_2 = "algorithm-2"


class ReplyPolicy(NamedTuple):
    """Options of a member; `SemanticOrder` documents them."""

    several_parents: bool = False
    on_missing_parent: str = HOLD
    patience_s: float | None = None
    store_limit: int | None = None
    overflow: str = REFUSE
    as_published: bool | str = False

    @property
    def patience_ns(self) -> int | None:
        return None if self.patience_s is None else up_ns(self.patience_s, "patience_s")


def check_policy(policy: ReplyPolicy) -> ReplyPolicy:
    """Return the policy. Raises LocalError for an invalid combination."""
    _check_choice("on_missing_parent", policy.on_missing_parent, (HOLD, DELIVER, DROP))
    _check_choice("overflow", policy.overflow, (REFUSE, DELIVER, DROP))
    _check_choice("as_published", policy.as_published, (False, True, ALGORITHM_1, ALGORITHM_2))
    if policy.on_missing_parent == HOLD and policy.patience_s is not None:
        raise LocalError(
            "patience_s has no effect without on_missing_parent='deliver' or 'drop'; set both"
        )
    if policy.on_missing_parent != HOLD and not exact(policy.patience_s or 0, "patience_s") > 0:
        raise LocalError(f"on_missing_parent={policy.on_missing_parent!r} needs patience_s above 0")
    if policy.store_limit is not None and policy.store_limit < 1:
        raise LocalError(f"store_limit is {policy.store_limit}; expected 1 or more")
    if policy.store_limit is None and policy.overflow != REFUSE:
        raise LocalError(
            f"overflow={policy.overflow!r} has no effect without store_limit; set both"
        )
    return policy


def _check_choice(name: str, value: object, allowed: tuple[object, ...]) -> None:
    if value not in allowed:
        raise LocalError(f"unknown {name} {value!r}; choose from {allowed}")


def find_guarantee(policy: ReplyPolicy) -> Guarantee:
    """Return the guarantee of S_b under a policy.

    `as_published` keeps the claims of the source (Theorems 1 and 2), for the checker to refute.
    """
    ways = {policy.on_missing_parent}
    if policy.store_limit is not None:
        ways.add(policy.overflow)
    complete = not ways & {DROP, REFUSE}
    return Guarantee(
        Relation.BY_REPLY,
        safe=DELIVER not in ways,
        live=complete,
        no_unnecessary_wait=complete,
        survives_loss=policy.on_missing_parent != HOLD,
        joins=True,
        leaves=True,
    )
