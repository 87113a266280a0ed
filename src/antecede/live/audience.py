"""Which batches go over a link as a whole, and of which the other end hears the numbers alone.

Source: Nakayama 2017, section 2: an event goes to who subscribes to one of its topics. Lanes stay
prefixes: who does not subscribe gets a *run* for it, first and last number and the topics, so that
one number a lane still says how far a member is.

    TOPICS    what the sender of the frame subscribes to from here on
    RUN       lane, block(seal), and the bytes of a run (`antecede.live.heads`)
    LACKS     a lane, first and last number of batches that were asked for, of which the sender has
              only a run, about a topic of the other end's, and whether it knows that the lane is
              over: that may stand behind these
    RUNS_DO   lanes that the sender asks for behind a number, runs too where it subscribes

Theory of operation
-------------------
Each end of a link goes by what the other end said last of its subscription, on that link, and sends
no batch before it has. That is never older than what the group's own changes have told it: who
subscribes says so on all links before its change goes out.

Only the owner of a lane makes runs of it, and seals them: else who hands a lane on could leave out
what it likes. So who hands on what its owner made a run gives it to those to whom all of that run
is of no interest, and says LACKS to others: these ask somebody else, a subscriber. What is here as
a whole goes as a whole. A batch of a member that is gone, of which nobody has more than a run when
all members are connected, is missed for good: then runs do, and the application is told
(`GivenUp`). Runs do as well for a newcomer where the owner gave a batch up before it knew of it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from antecede.core.clocks.encoding import ByteReader, block, varint
from antecede.errors import DecodeError
from antecede.live import heads, wire
from antecede.live.heads import GROUP_TOPIC, Run
from antecede.live.lanes import Sealed
from antecede.live.links import Link
from antecede.live.settings import NS

if TYPE_CHECKING:
    from antecede.live.node import Node

TOPICS, RUN, LACKS, RUNS_DO = range(32, 36)
"""Kinds of frames, beside those of `antecede.live.wire`."""
KINDS: Final = frozenset((RUN, LACKS, RUNS_DO))
RUN_TOPICS: Final = 64
"""Topics of a run at most: who hands it on must find one of its receiver's in none of them."""
MISSED_NS: Final = 2 * NS
"""So long all who are connected must lack what one lacks before runs do."""
MAX_SUBSCRIBED: Final = heads.MAX_TOPICS + 1


class Audience:
    """One peer's own subscription, and what goes to whom."""

    def __init__(self, node: Node, topics: Iterable[str]) -> None:
        self._node = node
        self.mine: tuple[str, ...] = tuple(topics)
        """What one subscribes to, as the others are told."""
        self._upto: dict[str, int] = {}
        """Lane -> up to where runs do that others than the owner hand on, though one subscribes."""
        self._over: dict[str, dict[str, bool]] = {}
        """Lane -> member that lacks what was asked of it -> whether it says that the lane is over:
        that may stand behind what one lacks."""
        self._asked_ns: dict[str, int] = {}
        """Lane that nobody has more of -> when that was asked last."""
        self.runs_sent = 0
        """Batches that went as part of a run."""

    # -- who subscribes to what --------------------------------------------------------------------

    def tell(self, link: Link) -> None:
        """Say on a link what one subscribes to."""
        topics = heads.pack_topics((*self.mine, GROUP_TOPIC))
        link.control.append(wire.framed(TOPICS, topics))

    def told(self, link: Link, body: bytes) -> None:
        """The other end has said what it subscribes to. Raises DecodeError."""
        reader = ByteReader(body)
        topics = heads.read_topics(reader, MAX_SUBSCRIBED)
        reader.finish()
        link.reader.topics = frozenset((*topics, GROUP_TOPIC))
        link.reader.told_lacking.clear()

    def subscribe(self, topics: tuple[str, ...]) -> None:
        """Subscribe to these from now on, and to no others; all links are told."""
        self.mine = topics
        for link in self._node.links.values():
            if not link.closing:
                self.tell(link)

    # -- what goes out -----------------------------------------------------------------------------

    def pull(
        self,
        link: Link,
        name: str,
        found: Iterable[tuple[int, Sealed]],
        upto: int,
        budget: int,
        parts: list[bytes],
    ) -> int:
        """Add frames of one lane, from batches behind the link's cursor; returns their bytes."""
        subscribed, own = link.reader.topics, name == self._node.lane
        if subscribed is None:
            return 0
        before, run = len(parts), _Open()
        size = 0
        for number, batch in found:
            if number > upto or size >= budget:
                break
            if number <= link.cursors[name]:  # of a run that went as one
                continue
            if heads.is_run(batch.wire):
                one = heads.read_run(batch.wire)
                if not self._may_have(link, name, number, subscribed, one):
                    break
                parts.append(self._run_frame(name, batch))
                link.cursors[name] = one.last
            elif own and subscribed.isdisjoint(topics := heads.read_head(batch.wire).topics):
                if not run.takes(topics):
                    parts.append(self._sealed(run))
                    run = _Open()
                run.add(number, topics)
                link.cursors[name] = number
                size += 2
                continue
            else:
                if run.topics:
                    parts.append(self._sealed(run))
                    run = _Open()
                parts.append(self._node.outflow.batch_frame(name, number, batch))
                link.cursors[name] = number
                self._node.outflow.resent += not own
            size += len(parts[-1])
        if run.topics:
            parts.append(self._sealed(run))
        return sum(map(len, parts[before:]))

    def _may_have(
        self, link: Link, name: str, number: int, subscribed: frozenset[str], run: Run
    ) -> bool:
        """Whether a run does for the other end; where not, it is told so, once."""
        if subscribed.isdisjoint(run.topics) or name in link.reader.runs_do:
            return True
        if link.reader.told_lacking.get(name) != number:
            link.reader.told_lacking[name] = number
            over = name in self._node.active.gone
            row = self._node.place(name), number, run.last, int(over)
            link.control.append(wire.framed(LACKS, *map(varint, row)))
        return False

    def _sealed(self, run: _Open) -> bytes:
        node = self._node
        raw = heads.pack_run(Run(run.first, run.last, tuple(sorted(run.topics))))
        self.runs_sent += run.last - run.first + 1
        return self._run_frame(node.lane, Sealed(node.seals.seal(run.last, raw), raw))

    def _run_frame(self, name: str, run: Sealed) -> bytes:
        return wire.framed(RUN, varint(self._node.place(name)) + block(run.seal), run.wire)

    # -- what comes --------------------------------------------------------------------------------

    def frame(self, link: Link, kind: int, body: bytes) -> None:
        """Take in a frame of one of `KINDS`. Raises DecodeError and other RemoteErrors."""
        if kind == RUN:
            self._run(link, body)
            return
        if kind == RUNS_DO:
            rows = wire.read_rows(body, link.names)
            self._node.wanted(link, rows)
            link.reader.runs_do |= rows.keys()
            return
        reader = ByteReader(body)
        name = wire.named(reader.varint(), link.names)
        link.reader.lacks[name] = reader.varint(), reader.varint()
        self._over.setdefault(name, {})[link.lane] = bool(reader.varint())
        reader.finish()
        self._node.upkeep.ask_another(link, name)

    def _run(self, link: Link, body: bytes) -> None:
        node = self._node
        if not link.member:
            raise DecodeError("a run of batches before the two ends know each other")
        reader = ByteReader(body)
        name, seal = wire.named(reader.varint(), link.names), reader.block()
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
                missed = name not in ordering.gone and name in self._said_over()
                last = min(last, self._upto.get(name, 0))
                link.reader.skips.add(name)
                node.upkeep.ask_another(link, name)
        if ordering.take_run(name, last, Sealed(seal, raw)):
            node.news = True
            if missed:  # that it is gone stands behind this
                ordering.miss(name, last - before)

    def _said_over(self) -> set[str]:
        """Return the lanes that are over, as half of those say who are connected, and none denies
        who has more of them: one who lies takes nothing away.
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
        """Whether a batch is left out, since a run before it was not taken whole: it is asked for
        again.
        """
        if name in link.reader.skips:
            if number > self._node.active.lanes.newest(name) + 1:
                return True
            link.reader.skips.discard(name)
        return False

    # -- what nobody has ---------------------------------------------------------------------------

    def settle(self, behind: dict[str, tuple[int, int]], now: int) -> None:
        """Ask for runs where nobody who is connected has more of a batch.

        `behind`: lane -> (its newest here, since when others have more). That is so of members that
        are gone, once all others are connected, for a while; and of what a member gave up since all
        had it whom it knew of: as a newcomer one is not owed that.
        """
        node = self._node
        self._over = {lane: by for lane, by in self._over.items() if lane in behind}
        gone, heard = node.active.gone | self._said_over(), node.active.lanes.heard
        self._asked_ns = {lane: at for lane, at in self._asked_ns.items() if lane in behind}
        alone = bool(set(node.upkeep.unheard()) - gone) if behind else False
        for lane, (newest, since) in behind.items():
            owner = node.greeted.get(lane)
            if owner is not None:
                hopeless = owner.given_up.get(lane, 0) > newest + 1
            else:
                hopeless = lane in gone and now - since >= MISSED_NS and not alone
                if lane not in gone and now - self._asked_ns.setdefault(lane, since) >= MISSED_NS:
                    self._asked_ns[lane] = now  # they may have learnt meanwhile that it is over
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
            able[0].reader.lacks.pop(lane)  # not again at once


class _Open:
    """A run that grows."""

    __slots__ = ("first", "last", "topics")

    def __init__(self) -> None:
        self.first = self.last = 0
        self.topics: set[str] = set()

    def takes(self, topics: Iterable[str]) -> bool:
        """Whether there is room for a batch about these topics."""
        if not self.topics:
            return True
        fits = len(self.topics.union(topics)) <= RUN_TOPICS
        return fits and self.last - self.first + 1 < heads.MAX_RUN

    def add(self, number: int, topics: Iterable[str]) -> None:
        """Let it go on with one more batch."""
        self.first, self.last = self.first or number, number
        self.topics.update(topics)
