"""The ordering list of Bhavanasi and Iyer exactly as printed, to show what its two misprints do.

Algorithm 1 (IsPresentInOL), line 3, returns true for `H_k <= seqno`: a number inside a node is
denied, a number above the last node is affirmed. Algorithm 2 (InsertInOL), line 8, writes
`H_k` where `H_{k-1}` is meant: the number is not recorded and the next node is destroyed.
Where there is no node k, line 8 follows the prose (`H_{k-1}`): the listing has nothing to write.

`antecede.clocks.intervals` is the repaired structure that everything else uses.
"""

from __future__ import annotations

from collections.abc import Iterable

Node = tuple[int, int]


class PrintedOrderingList:
    """The nodes (L, H) of one member; each algorithm as printed or as repaired."""

    def __init__(
        self, nodes: Iterable[Node] = (), *, lookup_printed: bool, insert_printed: bool
    ) -> None:
        self.nodes = list(nodes)
        self.lookup_printed = lookup_printed
        self.insert_printed = insert_printed

    def __contains__(self, seq: int) -> bool:
        """Algorithm 1, IsPresentInOL."""
        high = next((high for low, high in reversed(self.nodes) if low <= seq), None)
        if high is None:
            return False
        return high <= seq if self.lookup_printed else seq <= high

    def insert(self, seq: int) -> None:
        """Algorithm 2, InsertInOL; `k` is the first node above, which may not be there."""
        nodes = self.nodes
        k = next((k for k, (low, _) in enumerate(nodes) if low > seq), len(nodes))
        follows = k > 0 and nodes[k - 1][1] == seq - 1
        precedes = k < len(nodes) and nodes[k][0] == seq + 1
        if follows and precedes:
            nodes[k - 1 : k + 1] = [(nodes[k - 1][0], nodes[k][1])]
        elif precedes:
            nodes[k] = (seq, nodes[k][1])
        elif follows:
            at = k if self.insert_printed and k < len(nodes) else k - 1
            nodes[at] = (nodes[at][0], seq)
        else:
            nodes.insert(k, (seq, seq))
