"""Topic filter: batches sent in full on a connection, and those replaced by skip markers.

Source: Nakayama 2017, section 2: an event goes to the subscribers of one of its topics. Logs stay
prefixes. A skip marker (`RUN`) with first and last number and all topics replaces unsubscribed
batches. So one number for each sender still describes the progress of a member.

    TOPICS    subscription of this member from here on
    RUN       sender, block(signature), and a skip marker (`antecede.live.heads`)
    LACKS     sender, first and last number of requested batches that are here only as a skip
              marker with a topic of the other end, and whether its log has ended
    RUNS_DO   senders requested behind a number, skip markers accepted for subscribed topics

Theory of operation
-------------------

Each end uses the last subscription that it received on the connection, and sends no batch before.
That is never older than the subscription in the group's changes: a member announces it on all
connections before the change is sent.

Only the sender makes and signs skip markers of its log. Otherwise a relaying member could omit
batches. A relaying member passes a skip marker to ends that subscribe to none of its topics. To
others it sends LACKS, and these ask another member, a subscriber. Full batches are relayed in full.

A batch of a departed sender may exist only in skip markers when all members are connected. It is
lost for good. Then the skip marker is accepted, and `MessagesAbandoned` reports it. A joining
member accepts skip markers too, for batches that the sender freed before.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from antecede.core.clocks.encoding import ByteReader, block, varint
from antecede.errors import DecodeError
from antecede.live import heads, wire
from antecede.live.heads import GROUP_TOPIC, SkipRange
from antecede.live.lanes import SignedBatch
from antecede.live.links import Link
from antecede.live.settings import NS

if TYPE_CHECKING:
    from antecede.live.node import Node

TOPICS, RUN, LACKS, RUNS_DO = range(32, 36)
"""Frame kinds beside those of `antecede.live.wire`."""
KINDS: Final = frozenset((RUN, LACKS, RUNS_DO))
RUN_TOPICS: Final = 64
"""Topics of a skip marker, at most: few enough to be disjoint from most subscriptions."""
MISSED_NS: Final = 2 * NS
"""Time that all connected members must lack a batch before skip markers are accepted."""
MAX_SUBSCRIBED: Final = heads.MAX_TOPICS + 1


class TopicFilter:
    """Own subscription, and filter of each connection."""

    def __init__(self, node: Node, topics: Iterable[str]) -> None:
        self._node = node
        self.mine: tuple[str, ...] = tuple(topics)
        self._upto: dict[str, int] = {}
        """Sender -> number up to which relayed skip markers with subscribed topics are accepted."""
        self._over: dict[str, dict[str, bool]] = {}
        """Sender -> member that lacks its batches -> whether it reports the end of the log, which
        may be behind these."""
        self._asked_ns: dict[str, int] = {}
        """Sender without further batches anywhere -> time of the last request."""
        self.runs_sent = 0

    # -- subscriptions -----------------------------------------------------------------------------

    def announce(self, link: Link) -> None:
        """Announce the own subscription on a connection."""
        topics = heads.pack_topics((*self.mine, GROUP_TOPIC))
        link.control.append(wire.pack_frame(TOPICS, topics))

    def handle_subscription(self, link: Link, body: bytes) -> None:
        """Take the subscription of the other end. Raises DecodeError."""
        reader = ByteReader(body)
        topics = heads.read_topics(reader, MAX_SUBSCRIBED)
        reader.finish()
        link.reader.topics = frozenset((*topics, GROUP_TOPIC))
        link.reader.told_lacking.clear()

    def subscribe(self, topics: tuple[str, ...]) -> None:
        """Replace the subscription and announce it on all connections."""
        self.mine = topics
        for link in self._node.links.values():
            if not link.closing:
                self.announce(link)

    # -- sending -----------------------------------------------------------------------------------

    def pull(
        self,
        link: Link,
        name: str,
        found: Iterable[tuple[int, SignedBatch]],
        upto: int,
        budget: int,
        parts: list[bytes],
    ) -> int:
        """Add frames of one sender behind the connection's cursor; return their bytes."""
        subscribed, own = link.reader.topics, name == self._node.lane
        if subscribed is None:
            return 0
        before, run = len(parts), _OpenSkip()
        size = 0
        for number, batch in found:
            if number > upto or size >= budget:
                break
            if number <= link.cursors[name]:  # part of a skip marker sent before
                continue
            if heads.is_run(batch.wire):
                one = heads.read_run(batch.wire)
                if not self._may_have(link, name, number, subscribed, one):
                    break
                parts.append(self._run_frame(name, batch))
                link.cursors[name] = one.last
            elif own and subscribed.isdisjoint(topics := heads.read_head(batch.wire).topics):
                if not run.takes(topics):
                    parts.append(self._sign_skip(run))
                    run = _OpenSkip()
                run.add(number, topics)
                link.cursors[name] = number
                size += 2
                continue
            else:
                if run.topics:
                    parts.append(self._sign_skip(run))
                    run = _OpenSkip()
                parts.append(self._node.outbound.batch_frame(name, number, batch))
                link.cursors[name] = number
                self._node.outbound.resent += not own
            size += len(parts[-1])
        if run.topics:
            parts.append(self._sign_skip(run))
        return sum(map(len, parts[before:]))

    def _may_have(
        self, link: Link, name: str, number: int, subscribed: frozenset[str], run: SkipRange
    ) -> bool:
        """Return whether the other end accepts a skip marker. Otherwise send LACKS, once."""
        if subscribed.isdisjoint(run.topics) or name in link.reader.runs_do:
            return True
        if link.reader.told_lacking.get(name) != number:
            link.reader.told_lacking[name] = number
            over = name in self._node.active.gone
            row = self._node.place(name), number, run.last, int(over)
            link.control.append(wire.pack_frame(LACKS, *map(varint, row)))
        return False

    def _sign_skip(self, run: _OpenSkip) -> bytes:
        node = self._node
        raw = heads.pack_run(SkipRange(run.first, run.last, tuple(sorted(run.topics))))
        self.runs_sent += run.last - run.first + 1
        return self._run_frame(node.lane, SignedBatch(node.seals.seal(run.last, raw), raw))

    def _run_frame(self, name: str, run: SignedBatch) -> bytes:
        return wire.pack_frame(RUN, varint(self._node.place(name)) + block(run.seal), run.wire)

    # -- receiving ---------------------------------------------------------------------------------

    def frame(self, link: Link, kind: int, body: bytes) -> None:
        """Handle a frame of one of `KINDS`. Raises a RemoteError."""
        if kind == RUN:
            self._run(link, body)
            return
        if kind == RUNS_DO:
            rows = wire.read_rows(body, link.names)
            self._node.relay(link, rows)
            link.reader.runs_do |= rows.keys()
            return
        reader = ByteReader(body)
        name = wire.lookup_sender_id(reader.varint(), link.names)
        link.reader.lacks[name] = reader.varint(), reader.varint()
        self._over.setdefault(name, {})[link.lane] = bool(reader.varint())
        reader.finish()
        self._node.timers.ask_another(link, name)

    def _run(self, link: Link, body: bytes) -> None:
        node = self._node
        if not link.member:
            raise DecodeError("skip marker before HELLO of both ends")
        reader = ByteReader(body)
        name, seal = wire.lookup_sender_id(reader.varint(), link.names), reader.block()
        raw = reader.rest()
        run = heads.read_run(raw)
        ordering = node.active
        if name == node.lane or run.last <= ordering.lanes.newest(name):
            return
        if self.skips(link, name, run.first):
            return
        last, before, missed = run.last, ordering.lanes.newest(name), False
        if name != link.lane:
            node.seals.check(name, run.last, raw, seal)
            if not {*self.mine, GROUP_TOPIC}.isdisjoint(run.topics):
                missed = name not in ordering.gone and name in self._list_ended()
                last = min(last, self._upto.get(name, 0))
                link.reader.skips.add(name)
                node.timers.ask_another(link, name)
        if ordering.take_run(name, last, SignedBatch(seal, raw)):
            node.news = True
            if missed:  # the end of its log is behind this
                ordering.miss(name, last - before)

    def _list_ended(self) -> set[str]:
        """Return the senders whose logs have ended. At least half of the connected members report
        it, and none with more batches denies it. So a faulty member cannot suppress batches.
        """
        greeted, lanes = self._node.greeted, self._node.active.lanes
        found = set()
        for lane, told in self._over.items():
            newest = lanes.newest(lane)
            said = {
                one: over
                for one, over in told.items()
                if one in greeted and lanes.heard.get(one, {}).get(lane, 0) > newest
            }
            if said and all(said.values()) and 2 * len(said) >= len(greeted):
                found.add(lane)
        return found

    def skips(self, link: Link, name: str, number: int) -> bool:
        """Return whether to ignore a batch behind a partly accepted skip marker; it is requested
        again.
        """
        if name in link.reader.skips:
            if number > self._node.active.lanes.newest(name) + 1:
                return True
            link.reader.skips.discard(name)
        return False

    # -- lost batches ------------------------------------------------------------------------------

    def settle(self, behind: dict[str, tuple[int, int]], now: int) -> None:
        """Request skip markers for batches that no connected member has in full. `behind`: sender
        -> (its newest number here, start of the lag). This concerns departed senders, once all
        other members are connected for a while. It also concerns batches that a sender freed before
        it knew of this joining member.
        """
        node = self._node
        self._over = {lane: by for lane, by in self._over.items() if lane in behind}
        gone, heard = node.active.gone | self._list_ended(), node.active.lanes.heard
        self._asked_ns = {lane: at for lane, at in self._asked_ns.items() if lane in behind}
        alone = bool(set(node.timers.unheard()) - gone) if behind else False
        for lane, (newest, since) in behind.items():
            owner = node.greeted.get(lane)
            if owner is not None:
                hopeless = owner.given_up.get(lane, 0) > newest + 1
            else:
                hopeless = lane in gone and now - since >= MISSED_NS and not alone
                if lane not in gone and now - self._asked_ns.setdefault(lane, since) >= MISSED_NS:
                    self._asked_ns[lane] = now  # they may know the end of the log by now
                    for link in node.greeted.values():
                        link.reader.lacks.pop(lane, None)
            if not hopeless:
                continue
            able = [
                link
                for link in node.greeted.values()
                if heard.get(link.lane, {}).get(lane, 0) > newest
                and link.given_up.get(lane, 0) <= newest + 1
            ]
            if not able or any(
                link.reader.lacks.get(lane, (0, 0))[0] != newest + 1 for link in able
            ):
                continue
            upto = min(link.reader.lacks[lane][1] for link in able)
            if owner is not None:
                upto = min(upto, owner.given_up[lane] - 1)
            self._upto[lane] = upto
            able[0].control.append(wire.pack_rows(RUNS_DO, [(node.place(lane), newest)]))
            able[0].reader.lacks.pop(lane)  # not repeated at once


class _OpenSkip:
    __slots__ = ("first", "last", "topics")

    def __init__(self) -> None:
        self.first = self.last = 0
        self.topics: set[str] = set()

    def takes(self, topics: Iterable[str]) -> bool:
        """Return whether a batch with these topics fits."""
        if not self.topics:
            return True
        fits = len(self.topics.union(topics)) <= RUN_TOPICS
        return fits and self.last - self.first + 1 < heads.MAX_RUN

    def add(self, number: int, topics: Iterable[str]) -> None:
        """Extend the marker by one batch."""
        self.first, self.last = self.first or number, number
        self.topics.update(topics)
