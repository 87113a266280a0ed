"""Processes in Linux network namespaces, joined by a relay that can delay, lose and part them.

    with Network(["a", "b"], seed=1) as network:
        network["a"].popen([sys.executable, "-m", "peer", network["b"].address])
        network.set("a", "b", Link(delay_ms=20, jitter_ms=10, loss=0.05))
        network.cut({"a"}, {"b"})
        network.heal()

Tests that use it carry the mark `needs_namespaces` of `tests.live.networks.needs`.
"""

from tests.live.networks.network import Network, Stats
from tests.live.networks.relay import Counts, Link

__all__ = ["Counts", "Link", "Network", "Stats"]
