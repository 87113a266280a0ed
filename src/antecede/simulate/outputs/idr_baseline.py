"""What IDR would have sent and kept along the deliveries of another protocol.

Evropeytsev et al. 2016 compare their hierarchy with IDR over the same traffic. Super peers are
transparent: every peer, internal or external, is a member of one flat group, sends when it sends
and delivers when it delivers. Where the other protocol keeps causal order IDR would have delivered
at the same places.

State of a member (see `protocols.vector.idr`): the set CI of (sender, number), one a sender.
Sending carries it and empties it. Delivering message x of k drops every entry (l, t) with t <= y
for a carried (l, y), and puts (k, x) in place of k's.
"""

from __future__ import annotations

from antecede.clocks.lanes import pack
from antecede.protocols.vector.base import INTEGER_BYTES, PAIR_BYTES, encode_with_pairs
from antecede.protocols.vector.idr import IdrMessage
from antecede.simulate.outputs.figures import Sizes, Stored


class IdrBaseline:
    """IDR among `senders`, which need not be numbered from 0."""

    def __init__(self, senders: range) -> None:
        self.senders = senders
        self.sent = dict.fromkeys(senders, 0)
        self.ci: dict[int, dict[int, int]] = {at: {} for at in senders}
        self.carried: dict[int, tuple[int, int, dict[int, int]]] = {}
        """Message -> its sender, its number, and the CI it carries."""
        self.sizes, self.stored = Sizes(), Stored()

    def sent_by(self, at: int, message: int, counts: bool) -> None:
        """A member sends; `counts`: the message counts for the figures."""
        self.sent[at] += 1
        carried, self.ci[at] = self.ci[at], {}
        self.carried[message] = at, self.sent[at], carried
        if counts:
            encoded = encode_with_pairs(IdrMessage(at, self.sent[at], b"", pack(carried.items())))
            self.sizes.add(PAIR_BYTES * len(carried), len(encoded))

    def delivered_at(self, at: int, message: int) -> None:
        """A member delivers."""
        sender, number, carried = self.carried[message]
        kept = self.ci[at]
        for other, named in carried.items():
            if kept.get(other, named + 1) <= named:
                del kept[other]
        kept[sender] = number

    def sample(self) -> None:
        """Take what every member keeps now."""
        vector = INTEGER_BYTES * len(self.senders)
        self.stored.add([vector + PAIR_BYTES * len(kept) for kept in self.ci.values()])
