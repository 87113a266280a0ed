"""Counters of the reference engine, and the IDR baseline along another protocol's deliveries.

Evropeytsev et al. 2016 compare their hierarchy with IDR over the same traffic. Super peers are
transparent: every other peer is a member of one flat group, with the same sends and deliveries.

State of a member (`core.protocols.vector.idr`): the set CI of (sender, number), one per sender. A
send attaches CI to the message and empties it. Delivery of message x of k drops every entry (l, t)
with t <= y for an attached (l, y), and replaces k's entry by (k, x).
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from antecede.core import protocols
from antecede.core.clocks import pack
from antecede.errors import LocalError
from antecede.lab.simulate.config.model import SimulationConfig
from antecede.lab.simulate.delays import US
from antecede.lab.simulate.outputs.metrics import (
    MessageSizes,
    StorageSamples,
    VectorEntropy,
    wait_figures,
)
from antecede.lab.simulate.outputs.recording import FirstTransmission, InternalMessage
from antecede.lab.simulate.topology import EXTERNAL, INTERNAL, SUPER, Hierarchy


class IdrBaseline:
    """IDR among `senders`, whose numbers may start above 0."""

    def __init__(self, senders: range) -> None:
        self.senders = senders
        self.sent = dict.fromkeys(senders, 0)
        self.ci: dict[int, dict[int, int]] = {address: {} for address in senders}
        self.messages: dict[int, tuple[int, int, dict[int, int]]] = {}
        """Message -> its sender, its number, and its CI."""
        self.sizes, self.storage = MessageSizes(), StorageSamples()

    def on_send(self, address: int, message: int, counts: bool) -> None:
        """Record a send. `counts`: the message counts for metrics."""
        self.sent[address] += 1
        carried, self.ci[address] = self.ci[address], {}
        self.messages[message] = address, self.sent[address], carried
        if counts:
            encoded = protocols.encode_with_pairs(
                protocols.IdrMessage(address, self.sent[address], b"", pack(carried.items()))
            )
            self.sizes.add(protocols.PAIR_BYTES * len(carried), len(encoded))

    def on_deliver(self, address: int, message: int) -> None:
        """Record a delivery."""
        sender, number, carried = self.messages[message]
        kept = self.ci[address]
        for other, named in carried.items():
            if kept.get(other, named + 1) <= named:
                del kept[other]
        kept[sender] = number

    def sample(self) -> None:
        """Sample the storage of every member."""
        vector = protocols.INTEGER_BYTES * len(self.senders)
        self.storage.add([vector + protocols.PAIR_BYTES * len(kept) for kept in self.ci.values()])


class RunCounters:
    """Counters of a run. `record`: also store every first transmission."""

    def __init__(
        self,
        config: SimulationConfig,
        members: Mapping[int, protocols.Protocol],
        *,
        record: bool,
        progress: Callable[[float], None] | None = None,
    ) -> None:
        topology = config.topology
        self.warm_us = round(config.warm_s * US)
        self.members, self.record, self.progress = members, record, progress
        self.end_us = config.duration_s * US
        self.roles = [topology.role(address) for address in range(topology.size)]
        self.senders = topology.senders()
        self.members_by_role: dict[str, list[protocols.Protocol]] = {}
        for address, member in members.items():
            self.members_by_role.setdefault(self.roles[address], []).append(member)
        self.arrivals = self.deliveries = self.messages = 0
        self.counts: Counter[str] = Counter()
        self.sizes: dict[str, MessageSizes] = {}
        self.storage: dict[str, StorageSamples] = {}
        self.held, self.table_sizes = StorageSamples(), StorageSamples()
        self.waits_us: array[int] = array("q")
        self.entropy = VectorEntropy()
        self.sampled_us: list[int] = []
        self.sent_us: dict[int, int] = {}
        self.transmissions: list[FirstTransmission] = []
        self.numbered_messages: list[InternalMessage] = []
        self.idr = IdrBaseline(self.senders) if isinstance(topology, Hierarchy) else None

    def on_send(self, now_us: int, address: int, number: int) -> None:
        """Record a send of an application."""
        self.messages += 1
        if self.progress is not None:
            self.progress(now_us / self.end_us)
        self.sent_us[number] = now_us
        if self.idr is not None:
            self.idr.on_send(address, number, now_us >= self.warm_us)

    def on_transmit(
        self,
        now_us: int,
        address: int,
        member: protocols.Protocol,
        message: Any,
        number: int,
        targets: Sequence[int],
    ) -> None:
        """Record the first transmission of a message of the application."""
        whose = self._find_role(address, targets[0])
        if self.record or (whose is not None and self.sent_us[number] >= self.warm_us):
            try:
                control = member.control_bytes(message)
            except LocalError:  # a user's protocol without size accounting
                return
            encoded: int | None = None
            with suppress(LocalError):  # a user's protocol without a wire format
                encoded = len(member.encode(message))
            if self.record:
                one = FirstTransmission(now_us, address, number, tuple(targets), control, encoded)
                self.transmissions.append(one)
            if whose is not None and self.sent_us[number] >= self.warm_us:
                self.sizes.setdefault(whose, MessageSizes()).add(control, encoded)
                if whose == INTERNAL:
                    self.entropy.add(message.dv[1])
        if whose == INTERNAL:
            self.numbered_messages.append(
                InternalMessage(address, message.seq, number, message.dv, message.sender != address)
            )

    def _find_role(self, source: int, target: int) -> str | None:
        role = self.roles[source]
        if role == SUPER:
            return INTERNAL if self.roles[target] == INTERNAL else EXTERNAL
        return None if role == INTERNAL else role

    def on_control(self, member: protocols.Protocol, message: Any, copies: int) -> None:
        """Record the transmission of a control message, or of a message again."""
        self.counts["control_messages"] += copies
        try:
            self.counts["control_message_bytes"] += copies * member.control_bytes(message)
        except LocalError:
            return

    def on_deliver(
        self, now_us: int, address: int, number: int, arrived_us: int, incomplete: bool
    ) -> None:
        """Record a delivery to an application."""
        self.deliveries += 1
        self.counts["delivered_incomplete"] += incomplete
        if self.sent_us[number] >= self.warm_us:
            self.waits_us.append(now_us - arrived_us)
        if self.idr is not None:
            self.idr.on_deliver(address, number)

    def sample(self, time_us: int, arrived: Sequence[Mapping[int, int]]) -> None:
        """Sample every member."""
        self.sampled_us.append(time_us)
        self.held.add([len(arrived[address]) for address in self.senders])
        for role, members in self.members_by_role.items():
            try:
                self.storage.setdefault(role, StorageSamples()).add(
                    [one.storage_bytes() for one in members]
                )
            except LocalError:  # a user's protocol without size accounting
                continue
            if role == SUPER:
                self.table_sizes.add([len(one.table.origins) for one in members])  # type: ignore[attr-defined]
        if self.idr is not None:
            self.idr.sample()

    def compute_metrics(self) -> dict[str, float]:
        """Return the metrics that follow from these counters alone."""
        found: dict[str, float] = {
            "sent": self.messages,
            "arrivals": self.arrivals,
            "deliveries": self.deliveries,
        }
        found |= {name: count for name, count in self.counts.items() if count}
        for role, sizes in self.sizes.items():
            found |= sizes.compute_metrics(role)
        if self.entropy.counts:
            found["internal.entropy_bytes"] = self.entropy.compute_mean()
        for role, stored in self.storage.items():
            found |= stored.compute_metrics(role)
        if self.idr is not None:
            found |= self.idr.sizes.compute_metrics("idr")
            found |= self.idr.storage.compute_metrics("idr")
        found |= wait_figures(self.waits_us)
        if self.held.count:
            found |= {"held.mean": self.held.mean, "held.max": self.held.maximum}
        if self.table_sizes.count:
            found |= {"tt.mean": self.table_sizes.mean, "tt.max": self.table_sizes.maximum}
        return found

    def compute_series(self) -> dict[str, Sequence[float]]:
        """Return storage and held messages over time, means over members."""
        if not self.sampled_us:
            return {}
        stored = {
            f"{role}.storage_bytes": samples.series
            for role, samples in self.storage.items()
            if samples.count
        }
        if self.idr is not None:
            stored["idr.storage_bytes"] = self.idr.storage.series
        time_s = [time_us / US for time_us in self.sampled_us]
        return {"time_s": time_s, "held": self.held.series, **stored}
