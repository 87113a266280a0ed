"""Rules of SES by which V is taken over at a delivery, as printed or as they can be read.

Source: Sahai et al. 2020, Schiper-Eggli-Sandoz Protocol; errata (E17 to E19). True merges as the
printed example does, V_j := V_m; "overwriting" lets each entry of V_m replace that of V_j;
"unicast-rule" leaves out the co-destinations. Copies are told apart by number, in intervals,
because C_j no longer tells them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from antecede.clocks import intervals
from antecede.errors import LocalError

if TYPE_CHECKING:
    from antecede.protocols.multicast.ses import Ses
    from antecede.protocols.multicast.ses_messages import SesMessage

OVERWRITING = "overwriting"
UNICAST_RULE = "unicast-rule"


class PrintedMerge:
    """One of the rules, and the numbers delivered under it from each member, as intervals."""

    def __init__(
        self, rule: bool | str, arrivals: Iterable[tuple[int, Iterable[int]]] = ()
    ) -> None:
        self.rule = rule
        self.arrivals = {member: list(bounds) for member, bounds in arrivals}

    @classmethod
    def chosen(cls, as_published: bool | str) -> PrintedMerge | None:
        """Return the rule of the option; None: the repaired one. Raises LocalError."""
        if as_published not in (False, True, OVERWRITING, UNICAST_RULE):
            raise LocalError(
                f"as_published is {as_published!r}; it can be false, true, "
                f"{OVERWRITING!r} or {UNICAST_RULE!r}"
            )
        return cls(as_published) if as_published else None

    def has(self, message: SesMessage) -> bool:
        """Tell whether a message has been delivered."""
        return intervals.contains(self.arrivals.get(message.sender, ()), message.seq)

    def take_over(self, member: Ses, message: SesMessage) -> None:
        """Change V of a member as the rule says."""
        intervals.insert(self.arrivals.setdefault(message.sender, []), message.seq)
        kept = {d: vector for d, vector in message.entries if d not in member.last}
        if self.rule == UNICAST_RULE:
            member.merge_entries(kept)
            return
        if self.rule == OVERWRITING:
            kept.pop(member.me, None)
            member.entries.update(kept)
        else:
            member.entries = kept
        member.merge_entries(dict.fromkeys(message.to, message.stamp))

    def runs(self) -> tuple[tuple[int, tuple[int, ...]], ...]:
        """Return the numbers delivered, as bounds by member."""
        return tuple(sorted((k, tuple(bounds)) for k, bounds in self.arrivals.items()))
