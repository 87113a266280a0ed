"""Condition 2 of BSS as printed, to show its harm: a message overtakes its cause, which then stays.

Source: Sahai et al. 2020, Birman-Schiper-Stephenson Protocol; errata (E14). Needs whole vectors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from antecede.clocks.lanes import LANE_BITS

if TYPE_CHECKING:
    from antecede.protocols.vector.base import CausesMessage, CountingProtocol


def lacks_as_printed(member: CountingProtocol, message: CausesMessage) -> tuple[int, int] | None:
    """Return what a message waits for where `C_j[k] <= t[k]` lets it go; None: nothing.

    The sender's message before it; or the message itself, when none will ever do.
    """
    sender, seq, _, causes = message
    done = member.counts[sender]
    if seq != done + 1:
        return sender, seq - 1
    others = (member.clock ^ member.guard) - (done << (sender * LANE_BITS))
    kept = ((causes | member.guard) - others) & member.guard == member.guard
    return None if kept else (sender, seq)
