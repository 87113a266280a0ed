"""Policies of S_b where Bhavanasi and Iyer are silent: a full store, a parent that never comes.

Section III.A.2 allows one parent; section IV.A.3 assumes that nothing is lost; the footnote of
VI.C assumes that the store is large enough. None of these holds everywhere, so each has a
stated way out here, and `guarantee_of` says what is left of the promise.
"""

from __future__ import annotations

from typing import NamedTuple

from antecede.core.clocks import exact, up_ns
from antecede.core.protocols.base import Guarantee, Relation
from antecede.errors import LocalError

HOLD = "hold"
"""Missing parent: wait for ever (the text)."""
RELEASE = "release"
"""Hand the message over without its parent, marked (`DeliverIncomplete`)."""
SET_ASIDE = "set_aside"
"""Give the message up, and everything that answers it (`Discard`)."""
REFUSE = "refuse"
"""Full store: do not take the message; the transport must bring it again."""

ALGORITHM_1 = "algorithm-1"
ALGORITHM_2 = "algorithm-2"


class Policy(NamedTuple):
    """The choices of one member; see `SemanticOrder` for their meaning."""

    several_parents: bool = False
    missing_parent: str = HOLD
    patience_s: float | None = None
    store_limit: int | None = None
    overflow: str = REFUSE
    as_published: bool | str = False

    @property
    def patience_ns(self) -> int | None:
        """How long a message may be held, in nanoseconds: not less than the seconds given."""
        return None if self.patience_s is None else up_ns(self.patience_s, "patience_s")


def checked(policy: Policy) -> Policy:
    """Return the policy. Raises LocalError when it makes no sense."""
    _one_of("missing_parent", policy.missing_parent, (HOLD, RELEASE, SET_ASIDE))
    _one_of("overflow", policy.overflow, (REFUSE, RELEASE, SET_ASIDE))
    _one_of("as_published", policy.as_published, (False, True, ALGORITHM_1, ALGORITHM_2))
    if policy.missing_parent == HOLD and policy.patience_s is not None:
        raise LocalError("patience_s needs missing_parent='release' or 'set_aside'")
    if policy.missing_parent != HOLD and not exact(policy.patience_s or 0, "patience_s") > 0:
        raise LocalError(
            f"missing_parent={policy.missing_parent!r} needs patience_s, seconds above 0"
        )
    if policy.store_limit is not None and policy.store_limit < 1:
        raise LocalError(f"store_limit is {policy.store_limit}; 1 message is the least")
    if policy.store_limit is None and policy.overflow != REFUSE:
        raise LocalError(f"overflow={policy.overflow!r} needs a store_limit")
    return policy


def _one_of(name: str, value: object, allowed: tuple[object, ...]) -> None:
    if value not in allowed:
        raise LocalError(f"{name} is {value!r}; it can be one of {allowed}")


def guarantee_of(policy: Policy) -> Guarantee:
    """Return what S_b promises under a policy.

    A released message may come before its parent; a message that was set aside, or refused
    and not brought again, is not delivered at all. `as_published` keeps the claims of the text
    (Theorems 1 and 2), for the checker to refute.
    """
    ways = {policy.missing_parent}
    if policy.store_limit is not None:
        ways.add(policy.overflow)
    complete = not ways & {SET_ASIDE, REFUSE}
    return Guarantee(
        Relation.BY_REPLY,
        safe=RELEASE not in ways,
        live=complete,
        no_unnecessary_wait=complete,
        survives_loss=policy.missing_parent != HOLD,
        joins=True,
        leaves=True,
    )
