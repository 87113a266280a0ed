"""A peer of a live group as a state machine: no socket, no clock, no thread.

A driver tells it what happened (`link_up`, `receive`, `link_down`, `say`, `tick`, `stored`), ends
each turn with `turn`, and asks it what to write on each link (`pull`), whom to call (`dials`), what
to store (`take_rows`), what to hand to the application (`take_delivered`), and which links to close
(`closing`). All times are nanoseconds of one clock that never goes back.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from antecede.core.clocks import seconds_text
from antecede.core.clocks.encoding import ByteReader, block, varint
from antecede.core.protocols.serialization import BYTES, NUMBER, misfit, pack_state, unpack_state
from antecede.errors import (
    ConflictError,
    DecodeError,
    IncarnationError,
    LimitError,
    LocalError,
    MismatchError,
    RemoteError,
    SequenceError,
)
from antecede.live import audience, wire
from antecede.live.audience import Audience
from antecede.live.charges import BEGIN_ANEW, OLD_COPY, PUT_OUT, Charges, another_life
from antecede.live.conflicts import Proof, compared
from antecede.live.events import Change, ChangeKind, Delivery, Id, Said, lane_of, member_of
from antecede.live.flow import Flow
from antecede.live.greeting import Greeting
from antecede.live.heads import own_topics, read_head
from antecede.live.lanes import Sealed
from antecede.live.links import Link
from antecede.live.ordering import Ordering, Row
from antecede.live.outflow import Outflow
from antecede.live.rejections import Rejections, rejection
from antecede.live.sealing import Seals, Trusting
from antecede.live.settings import MAJORITY, Settings
from antecede.live.upkeep import Upkeep

if TYPE_CHECKING:
    from antecede.live.timekeeping import Timekeeping

UNREAD = 4096
"""Frames beside batches that wait for a link: whoever reads none of so many is not waited for."""
TLS = b"\x16\x03"
"""How what one says begins who speaks TLS; no greeting does."""
OF_ANOTHER = "room", "order", "options", "group"
"""Where two members differ that are of different groups."""
UNGREETED = 64
"""Links of one name, or of callers without names, at most that have not greeted yet."""


class Saved(NamedTuple):
    """What a store gives back."""

    snapshot: bytes
    rows: Iterable[Row]
    """The inputs since then, in order."""
    batch_of: Callable[[str, int], Sealed]
    done: int
    """How many of the delivered messages the application is done with."""
    owners: Mapping[str, bytes] = MappingProxyType({})
    """Lane -> what shows whose it is, of the lanes of others."""


class Node:
    """One peer. `life`: eight letters or digits, drawn for it; `address`: where it listens."""

    ordering_class = Ordering

    def __init__(
        self,
        name: str,
        settings: Settings,
        life: str,
        address: str = "",
        *,
        seals: Seals | None = None,
        durable: bool = False,
    ) -> None:
        self.name, self.settings, self.address = name, settings, address
        self.lane = lane_of(name, life)
        self.seals = seals or Trusting()
        self.durable = durable
        """Whether a store says when something may be told to others."""
        self.ordering: Ordering | None = None
        """None: in no group yet."""
        self._majority = settings.partition == MAJORITY
        self._check_all = settings.check_all_seals
        self.group_tag = b""
        """Drawn when the group was founded: two groups of one name do not mix."""
        self.links: dict[int, Link] = {}
        self.greeted: dict[str, Link] = {}
        """Lane -> the link to that member."""
        self.refused: Counter[str] = Counter()
        """What was refused, by the kind of error."""
        self.last_refusal = ""
        self.refusal = ""
        """What a member said who did not let one in."""
        self.out = ""
        """Why one is out of the group for good; empty: one is not."""
        self.left = False
        """Whether one has said that one leaves: nothing is said behind that."""
        self._closed_to: set[str] = set()
        """Lanes of members that take nothing more of one that has left."""
        self.parted = False
        """Whether one has left and waits for nobody to hear of it: nobody is called any more."""
        self.bytes_in = self.bytes_out = 0
        """Over all links of this life."""
        self._stored: dict[str, int] = {}
        self._learnt: dict[str, bytes] = {}
        """Lane -> what shows whose it is, as far as the store was not given it."""
        self.news = False
        """Whether something has come that was not acknowledged to all."""
        self._told: dict[str, int] = {}
        """Lane -> what was last acknowledged to all."""
        self.done = self.taken = 0
        """How many of the delivered messages the application is done with, and was handed."""
        self._open: deque[Said] = deque()
        """What was handed to the application, and is not acknowledged; with a store only."""
        self._before_open = 0
        """How many messages were delivered before the first of these."""
        self.charges = Charges(name)
        self.rejections = Rejections()
        self.proofs: dict[str, Proof] = {}
        """Lane -> that its owner said otherwise to others, where both have come here."""
        self.greeting = Greeting(self)
        self.flow = Flow(self)
        self.inbox_limit = settings.memory // 4
        """Bytes that wait for the application before nothing more is acknowledged."""
        self.is_reading = True
        """True if messages of the others are read. Otherwise their losses are unknown."""
        self._withholds = False
        """True if some batches are not acknowledged, since too much waits for the application."""
        self.upkeep = Upkeep(self)
        self.outflow = Outflow(self)
        topics = own_topics(settings.topics or ())
        self.audience = Audience(self, topics) if settings.by_topics else None

    @property
    def time(self) -> Timekeeping | None:
        """Clocks and delays; None: the order goes by none. Else the driver is to tell what the
        clock shows (`shows`).
        """
        return self.upkeep.time

    # -- beginning and end -------------------------------------------------------------------------

    def found(self, tag: bytes) -> None:
        """Begin a group of one; `tag`: eight bytes that were drawn for it."""
        self.greeting.begin(self.ordering_class(self.lane, self.settings, self.seals.seal))
        self.group_tag = tag
        self.active.change(Change(ChangeKind.JOINED, self.lane, self.address))
        self.say_subscription()
        self.active.flush()

    def say_subscription(self) -> None:
        """Tell the group, with the next batch, what one subscribes to; in orders by topics."""
        if self.audience is not None:
            topics = "\n".join(self.audience.mine)
            self.active.change(Change(ChangeKind.SUBSCRIBED, self.lane, topics))

    def subscribe(self, topics: Collection[str]) -> None:
        """Subscribe to these topics from now on, and to no others. Raises LocalError."""
        chosen = own_topics(topics)
        ordering, audience = self.active, self.audience
        if audience is None:
            raise LocalError(f"with order {self.settings.order!r} nobody subscribes to topics")
        if chosen != ordering.subscriptions[self.lane]:
            audience.subscribe(chosen)
            self.say_subscription()

    @property
    def active(self) -> Ordering:
        """The ordering of the group one is in. Raises LocalError when one is in none."""
        if self.out:
            raise LocalError(f"{self.name} is out of the group: {self.out}")
        if self.ordering is None:
            raise LocalError(f"{self.name} is in no group yet: join or found one")
        return self.ordering

    def leave(self) -> None:
        """Say, once, that one leaves; `owed` tells when everybody knows."""
        if self.left:
            return
        self.acknowledge()  # frames go before batches: others may wait for it, to leave too
        self.active.flush()  # by topics changes go first, and behind this one nothing is heeded
        self.active.change(Change(ChangeKind.LEFT, self.lane))
        self.left = True
        self.active.flush()

    def go_out(self, why: str) -> None:
        """Be out of the group for good: nothing is said or taken any more in this life."""
        self.out = self.out or why
        for link in self.links.values():
            if not link.closing:
                self.end(link, "out of the group")

    def put_out(self, lane: str, why: str) -> None:
        """Say that somebody else is out. Raises LocalError for who is not in the group."""
        if lane == self.lane or lane not in self.active.members:
            raise LocalError(f"{lane} is not another member of this group")
        self.active.change(Change(ChangeKind.PUT_OUT, lane, why))

    def others(self) -> list[str]:
        """Return the lanes of all others that could be put out here."""
        return self.active.others()

    def owed(self) -> list[str]:
        """Return the members that have not acknowledged everything that was said here."""
        ordering = self.active
        newest, heard = ordering.lanes.newest(self.lane), ordering.lanes.heard
        others = (m for m in ordering.others() if m not in self._closed_to)
        return [m for m in others if heard.get(m, {}).get(self.lane, 0) < newest]

    def heard_upto(self) -> int:
        """Return the newest own batch that some other member has or had, with all before it.

        The newest of all in a group of one, and in none: there is nobody to have it.
        """
        ordering = self.ordering
        if ordering is None:
            return 0
        heard, newest = ordering.lanes.heard, ordering.lanes.newest(self.lane)
        had = max((heard.get(m, {}).get(self.lane, 0) for m in ordering.others()), default=newest)
        return max(had, ordering.had_by_departed)

    # -- the application ---------------------------------------------------------------------------

    def say(self, payload: bytes, reply_to: Sequence[Id] = (), topics: Collection[str] = ()) -> Id:
        """Say something to all; it goes out with this turn. Raises LocalError where it cannot."""
        if self.stopped:
            raise LocalError("this part of the group has no majority: nothing is sent")
        if self.left:
            raise LocalError(f"{self.name} has left: nothing is sent")
        if why := self.why_nothing_is_heard():
            raise LocalError(why)
        self.flow.is_pressed = self.flow.is_pressed or self.flow.is_full
        return self.active.say(payload, reply_to, topics)

    def why_nothing_is_heard(self) -> str:
        """Return why the others take no message of this member now (orders by clocks), or ""."""
        if self.time is None or not self.settings.waits_for_clocks:
            return ""
        if not (by_ns := self.time.stamped_ahead_ns()):
            return ""
        return (
            f"messages of {self.name} are stamped {seconds_text(by_ns)} s ahead of the clocks of "
            "the others, which take none of them until then: nothing is sent. Set the clock right, "
            "take and acknowledge what has come, and begin with a new store"
        )

    @property
    def stopped(self) -> bool:
        """Whether one is cut off from a majority, in a group that stops then."""
        if not self._majority or self.ordering is None:
            return False
        heard = 1 + sum(lane in self.greeted for lane in self.ordering.others())
        return 2 * heard <= len(self.ordering.members)

    def take_delivered(self) -> list[Delivery]:
        """Return, once, what is delivered."""
        if self.ordering is None or self.stopped or not self.ordering.delivered:
            return []
        events, self.ordering.delivered = self.ordering.delivered, []
        fresh = [one for one in events if isinstance(one, Said) and not one.is_history]
        self.taken += sum(one.live_count for one in fresh)
        if self.durable:
            self._open.extend(fresh)
        return events

    # -- links -------------------------------------------------------------------------------------

    def link_up(self, number: int, name: str, now: int, *, dialed: bool) -> None:
        """A connection stands, to whom the certificate names."""
        self._make_room(name)
        link = self.links[number] = Link(number, name, now, dialed=dialed)
        link.control.append(wire.pack_hello(self.greeting.hello()))
        if self.audience is not None:
            self.audience.tell(link)

    def _make_room(self, name: str) -> None:
        """End the oldest link of this name that has not greeted, where there are too many."""
        silent = [x for x in self.links.values() if not (x.lane or x.closing) and x.name == name]
        if len(silent) >= UNGREETED:
            self.refuse(silent[0], LimitError(f"{UNGREETED} links of one name without a greeting"))

    def link_down(self, number: int, now: int) -> None:
        """A connection is gone."""
        link = self.links.pop(number, None)
        if link is not None:
            self.rejections.ended(link, now)
        if link is not None and self.greeted.get(link.lane) is link:
            del self.greeted[link.lane]
            if self.time is not None:
                self.time.check.forget(link.lane)
            if self.ordering is not None:
                self.ordering.forget(link.lane)
            self.upkeep.lost(link, now)

    def receive(self, number: int, data: bytes, now: int) -> None:
        """Take in bytes; what cannot be right ends the link with a reason."""
        link = self.links.get(number)
        if link is None or link.closing:
            return
        link.heard_ns = now
        self.bytes_in += len(data)
        try:
            if not link.bytes_in and data.startswith(TLS):
                raise DecodeError(
                    "it begins with TLS, and this room goes without certificates (insecure)"
                )
            for kind, body in link.read(data):
                self._frame(link, kind, body, now)
                if link.closing:
                    return
            if len(link.control) > UNREAD:
                raise LimitError(f"{len(link.control)} frames wait, and it reads none of them")
        except RemoteError as error:
            self.refuse(link, error)

    def refuse(self, link: Link, error: RemoteError) -> None:
        """End a link with a reason, and count it."""
        self.count(link, error)
        link.is_rejected = True
        if isinstance(error, MismatchError) and error.differs in OF_ANOTHER:
            self.rejections.note(link, str(error))  # both ends reject each other
        self.end(link, rejection(str(error)))

    def count(self, link: Link, error: RemoteError) -> None:
        """Count what was refused, and go on."""
        self.refused[type(error).__name__] += 1
        self.last_refusal = f"{link.name or 'somebody who called'}: {error}"

    def why_out(self, lane: str) -> str:
        """Return the last word to one who is out of the group."""
        member = member_of(lane)
        known = self.ordering.members if self.ordering is not None else ()
        if any(member_of(one) == member for one in known):
            return f"{PUT_OUT}: {another_life(member)}"
        return f"{self._put_out(lane)}; join anew"

    def _put_out(self, lane: str) -> str:
        """Return by whom a member was put out, and why, as far as that is known."""
        why = self.ordering.put_out_by.get(lane) if self.ordering is not None else None
        return f"{PUT_OUT} {why}" if why else f"{PUT_OUT}: {lane} is out"

    def _another_life(self) -> str:
        """Return in words that another life of this member is in the group; empty: none is."""
        same = (lane for lane in self.active.others() if member_of(lane) == self.name)
        return another_life(self.name) if any(same) else ""

    def charge(self, link: Link, what: str, words: str) -> None:
        """Somebody says what would end this life."""
        self.charges.bring(what, link.name, words)
        self.weigh(link.heard_ns)

    def weigh(self, now: int) -> None:
        """Go out where enough of the others say so."""
        if self.ordering is not None and not self.out:
            words = self.charges.verdict(self.ordering.members, self.greeted, now)
            if words:
                begun = another_life(self.name)
                self.go_out(begun if words == f"{PUT_OUT}: {begun}" else words)

    def end(self, link: Link, why: str) -> None:
        """End a link."""
        link.control.append(wire.framed(wire.BYE, why.encode()[: wire.MAX_TEXT]))
        link.closing = why or "it ends"

    def closing(self) -> list[int]:
        """Return the links that are to be closed once what `pull` gives is written."""
        return [number for number, link in self.links.items() if link.closing]

    # -- what comes --------------------------------------------------------------------------------

    def _frame(self, link: Link, kind: int, body: bytes, now: int) -> None:
        if kind == wire.BATCH:
            self._batch(link, body)
        elif len(body) > wire.MAX_CONTROL and kind not in (wire.WELCOME, wire.LANES):
            raise LimitError(f"a frame of kind {kind} of {len(body)} bytes")
        elif kind == wire.HELLO:
            self.greeting.greeted(link, wire.unpack_hello(body), now)
        elif kind == wire.BYE:
            self._bye(link, body)
        elif not link.lane:
            raise DecodeError(f"a frame of kind {kind} before a greeting")
        elif kind == wire.WELCOME:
            self.greeting.welcomed(link, wire.unpack_welcome(body), now)
        elif kind == wire.PING:
            self._ping(link, body)
        elif kind == wire.PONG:
            self._pong(link, ByteReader(body), now)
        elif kind == wire.LANES:
            link.names += wire.read_names(body, wire.MAX_LANES - len(link.names))
        elif kind == audience.TOPICS and self.audience is not None:
            self.audience.told(link, body)
        elif self.out:
            self.end(link, "out of the group")
        elif self.ordering is None:
            raise DecodeError(f"a frame of kind {kind} from one who is in no group with us")
        else:
            self._news(link, kind, body)

    def _news(self, link: Link, kind: int, body: bytes) -> None:
        ordering = self.active
        if kind == wire.OWNER:
            self._owner(link, ByteReader(body))
        elif kind == wire.HAVE:
            rows = wire.read_rows(body, link.names)
            ordering.lanes.acknowledged(link.lane, rows)
            if link.lane in ordering.gone:  # it left, and has taken this before
                ordering.had_by_departed = max(ordering.had_by_departed, rows.get(self.lane, 0))
        elif kind == wire.WANT:
            self.wanted(link, wire.read_rows(body, link.names))
        elif kind == wire.BUDGET:
            self.flow.budgets[link.lane] = ByteReader(body).varint()
            self.flow.update()
        elif kind == wire.GONE:
            link.given_up.update(wire.read_rows(body, link.names))
        elif self.audience is not None and kind in audience.KINDS:
            self.audience.frame(link, kind, body)
        else:
            raise DecodeError(f"a frame of an unknown kind, {kind}")

    def _owner(self, link: Link, reader: ByteReader) -> None:
        """Learn whose a lane is that the link hands on. Its owner may have shown two keys: that is
        not the fault of who hands one of them on.
        """
        self.learn(link, wire.lane(reader), reader.rest())

    def learn(self, link: Link, lane: str, owner: bytes) -> None:
        """Learn whose a lane is from somebody else, or distrust what that one hands on of it."""
        try:
            self.learn_owner(lane, owner)
        except DecodeError as error:
            self._distrust(link, lane, error)

    def learn_owner(self, lane: str, owner: bytes) -> None:
        """Learn whose a lane is, for good: what is stored of it can be handed on after a restart.

        Raises DecodeError where that is not shown.
        """
        before = self.seals.owner(lane)
        self.seals.learn(lane, owner)
        if self.durable and owner != before:
            self._learnt[lane] = owner

    def can_show(self, lane: str) -> bool:
        """Whether others can be shown whose a lane is, without which they believe nothing of it;
        in groups without certificates they believe whoever hands it on.
        """
        return not self.seals.owner(self.lane) or bool(self.seals.owner(lane))

    def _distrust(self, link: Link, lane: str, error: RemoteError) -> None:
        """Take nothing more of a lane from somebody who hands it on."""
        self.count(link, error)
        link.distrusted.add(lane)

    def _batch(self, link: Link, body: bytes) -> None:
        if self.out:
            return
        if self.ordering is None or not link.member:
            raise DecodeError("a batch before the two ends know each other")
        reader = ByteReader(body)
        name, number = wire.named(reader.varint(), link.names), reader.varint()
        seal, data = reader.block(), reader.rest()
        if name != link.lane:
            self._handed_on(link, name, number, Sealed(seal, data))
            return
        if self._check_all and number > self.ordering.lanes.newest(name):
            self.seals.check(name, number, data, seal)
        try:
            is_new = self.ordering.take(name, number, Sealed(seal, data))
        except IncarnationError as error:
            self._two_lives(link, name, error)
            raise
        if is_new:
            self.news = True
            if self.time is not None:
                self.time.received(name, number, read_head(data), direct=True)
        elif not self._compare(link, name, number, Sealed(seal, data)):
            # Perhaps the sender goes on from an old copy of its store: it is to see the difference.
            self._hand_back(link, name, number)

    def _compare(self, link: Link, name: str, number: int, batch: Sealed) -> bool:
        """Look whether what comes again is the same. Who sealed two under one number is proven
        false; to put it out is left to those who know it, since what only it has is lost then.
        """
        try:
            proof = compared(self.seals, self.active.lanes, name, number, batch)
        except ConflictError as error:
            self._distrust(link, name, error)
            return False
        if proof is not None and name not in self.proofs:
            self.proofs[name] = proof
            why = f"{name} is proven false: it sealed two batches under number {number}"
            self.count(link, ConflictError(why))
        return proof is None

    def _old_copy(self, by: str, number: int) -> str:
        """Return in words that others know more of this member's log than its store does."""
        return f"{OLD_COPY}: {by} has another batch {number} of {self.lane}. {BEGIN_ANEW}"

    def _hand_back(self, link: Link, name: str, number: int) -> None:
        """Show the other end a batch of its own log as it is here."""
        lane = self.active.lanes.by_name[name]
        if lane.first <= number <= lane.newest:
            link.control.append(self.outflow.batch_frame(name, number, lane.get(number)))

    def _two_lives(self, link: Link, name: str, error: IncarnationError) -> None:
        """A batch shows that a store is an old copy: this member's own, or that of the sender.

        Then the sender gets the newest batch of its log that is here. With its own signature under
        a number that it has given out again, this is a proof.
        """
        if error.member == self.lane:
            words = self._old_copy(name, self.active.lanes.newest(self.lane))
            self.charges.bring(OLD_COPY, member_of(name), words)
            self.weigh(link.heard_ns)
        elif error.member == name == link.lane:
            newest = self.active.lanes.newest(name)
            self._hand_back(link, name, newest)
            words = f"{OLD_COPY}: {self.name} has another batch {newest} of {name}. {BEGIN_ANEW}"
            raise IncarnationError(words, name) from error

    def _handed_on(self, link: Link, name: str, number: int, batch: Sealed) -> None:
        """A batch of somebody else. What is wrong with it may be the fault of either, so the link
        stays, and the lane is asked of another.
        """
        ordering = self.active
        if name in link.distrusted:
            return
        skips = link.reader.skips
        if skips and self.audience is not None and self.audience.skips(link, name, number):
            return
        is_known = number <= ordering.lanes.newest(name)
        if is_known and name != self.lane:
            self._compare(link, name, number, batch)
            return
        try:
            self.seals.check(name, number, batch.wire, batch.seal)
        except DecodeError as error:
            self._distrust(link, name, error)
            return
        if name == self.lane:
            if not is_known:
                self.go_out(f"{OLD_COPY}: {link.name} has batch {number} of {name}. {BEGIN_ANEW}")
            elif not ordering.lanes.by_name[name].agrees(number, batch):
                self.go_out(self._old_copy(link.name, number))
            return
        try:
            if ordering.take(name, number, batch):
                self.news = True
                if self.time is not None:
                    self.time.received(name, number, read_head(batch.wire), direct=False)
        except SequenceError as error:
            if isinstance(error, IncarnationError):
                self._two_lives(link, name, error)
            self._distrust(link, name, error)
        except RemoteError as error:
            self.count(link, error)
            ordering.end_lane(name, str(error))

    def _ping(self, link: Link, body: bytes) -> None:
        reader = ByteReader(body)
        clock = reader.varint()
        link.unheard = frozenset(wire.read_places(reader, link.names))
        shown = () if self.time is None else (varint(max(0, self.time.system_clock_ns)),)
        link.control.append(wire.framed(wire.PONG, varint(clock), *shown))

    def _pong(self, link: Link, reader: ByteReader, now: int) -> None:
        link.round_trip_ns = max(0, now - reader.varint())
        if self.time is not None and link.member:
            clock_ns = reader.varint() + link.round_trip_ns // 2
            self.time.check.hear(link.lane, clock_ns, now)

    def _bye(self, link: Link, body: bytes) -> None:
        words = self.rejections.read_bye(link, body.decode(errors="replace"))
        link.said_bye, link.closing = True, words or "the other end ends it"
        if self.ordering is None:
            if link.dialed:
                self.refusal = link.closing
        elif self.left and link.closing.startswith(PUT_OUT):
            if link.lane:  # it said before what it has
                self._closed_to.add(link.lane)
        elif link.closing.startswith(OLD_COPY):
            self.charge(link, OLD_COPY, link.closing)
        elif not link.closing.startswith(PUT_OUT):
            return
        elif link.name == self.name:
            self.go_out(another_life(self.name))  # nobody else has this name's certificate
        else:
            self.charge(link, PUT_OUT, link.closing)

    def wanted(self, link: Link, rows: dict[str, int]) -> None:
        """Hand on, from here on, what the other end asks for, though it is not ours."""
        for name, number in rows.items():
            lane = self.active.lanes.by_name.get(name)
            if number >= wire.NO_MORE:
                link.cursors.pop(name, None)
                link.staged.pop(name, None)
                link.loading.discard(name)
            elif lane is not None and not self.can_show(name):
                self.outflow.say_gone(link, name, lane.newest + 1)  # somebody else is asked
            elif lane is not None:
                link.cursors[name] = number
                link.reader.told_lacking.pop(name, None)
                link.reader.runs_do.discard(name)
                self._show_owner(link, name)

    def _show_owner(self, link: Link, name: str) -> None:
        owner = self.seals.owner(name)
        if owner and name not in link.owners and name != self.lane:
            link.owners.add(name)
            link.control.append(wire.framed(wire.OWNER, block(name.encode()), owner))

    # -- the end of a turn -------------------------------------------------------------------------

    def turn(self) -> None:
        """End a turn: what was said becomes a batch."""
        ordering = self.ordering
        if ordering is None or self.out:
            return
        waits = self.time is not None and self.time.check.is_pending
        if ordering.unsent and not (self.stopped or waits):
            ordering.flush()
        if self.lane in ordering.gone and not self.left:
            self.go_out(self._another_life() or self._put_out(self.lane))

    def shows(self, wall_ns: int, now: int) -> None:
        """The system's clock shows this (orders by clocks); told before all that goes by it."""
        if self.time is not None:
            others: Collection[str] = () if self.ordering is None else self.ordering.members
            reading = self.time.shows(wall_ns, now, alone=len(others) < 2)
            if self.ordering is not None and not self.out:
                self.ordering.clock.accuracy_ns = self.time.accuracy_ns
                self.ordering.shows(reading)

    def tick(self, now: int) -> None:
        """Let time pass."""
        self.upkeep.tick(now)

    # -- the store ---------------------------------------------------------------------------------

    def take_rows(self) -> tuple[list[Row], dict[str, int]]:
        """Return, once, the inputs to be stored, and what `stored` is to be told afterwards."""
        if self.ordering is None:
            return [], {}
        rows, self.ordering.rows = self.ordering.rows, []
        self.ordering.urgent_rows = False
        return rows, self.ordering.lanes.frontier() if rows else {}

    def take_owners(self) -> dict[str, bytes]:
        """Return, once, what was learnt of whose lanes are, to be stored with the next rows."""
        learnt, self._learnt = self._learnt, {}
        return learnt

    def stored(self, frontier: dict[str, int]) -> None:
        """The rows that came with this frontier are written: now others may be told."""
        self._stored.update(frontier)
        self.news = True
        if self.ordering is not None and not self.out:
            self.greeting.stored()

    def safe(self) -> dict[str, int]:
        """Return for each lane how far it will survive a crash of this member."""
        if self.durable:
            return self._stored
        return self.ordering.lanes.frontier() if self.ordering is not None else {}

    def safe_number(self, name: str) -> int:
        """Return how far one lane will survive a crash of this member."""
        if self.durable:
            return self._stored.get(name, 0)
        return self.ordering.lanes.newest(name) if self.ordering is not None else 0

    def loads(self) -> list[tuple[int, str, int]]:
        """Return, once, (link, lane, number): to ask the store for what is behind that number."""
        found = []
        for link in self.links.values():
            found += [(link.number, name, link.cursors[name]) for name in link.loading]
            link.asked |= link.loading
            link.loading.clear()
        return found

    def loaded(self, number: int, lane: str, batches: Iterable[tuple[int, Sealed]]) -> None:
        """The store has answered."""
        link = self.links.get(number)
        if link is not None:
            link.asked.discard(lane)
            link.staged.setdefault(lane, deque()).extend(batches)

    def acknowledged(self, count: int) -> None:
        """The application is done with the first so many messages."""
        self.done = max(self.done, count)
        while self._open and self._before_open + self._open[0].live_count <= self.done:
            self._before_open += self._open.popleft().live_count

    def snapshot(self) -> bytes:
        """Return all that `restore` needs beside the batches; the log of rows begins anew."""
        ordering = self.active
        waiting = (one for one in ordering.delivered if isinstance(one, Said))
        runs = deque(one for one in (*self._open, *waiting) if not one.is_history)
        _drop_first(runs, self.done - self._before_open)
        state = ordering.state(message for run in runs for message in run.messages())
        return pack_state((self.group_tag, self.done, state))

    def restore(self, saved: Saved, now: int) -> None:
        """Become what was stored. Raises DecodeError where that cannot be."""
        fields = unpack_state(saved.snapshot, 3)
        if where := misfit(fields, (BYTES, NUMBER, BYTES)):
            raise DecodeError(f"no snapshot of a live peer: {where}")
        self.group_tag, done, state = fields
        ordering, waiting = self.ordering_class.restored(
            state, self.settings, self.seals.seal, saved.batch_of
        )
        self.lane = ordering.me
        for lane, owner in saved.owners.items():
            self.seals.recall(lane, owner)
        for row in saved.rows:
            ordering.replay(row)
        if self.time is not None and ordering.clock.reading is not None:
            self.time.resume(ordering.clock.reading, now)
        ordering.begin_again()
        self.done = max(done, saved.done)
        fresh = deque([*waiting, *(one for one in ordering.delivered if isinstance(one, Said))])
        _drop_first(fresh, self.done - done)
        ordering.delivered = list(fresh)
        ordering.backlog.restore(fresh, self.done)
        self.taken = self._before_open = self.done
        self._stored = ordering.lanes.frontier()
        self.outflow.begin(ordering.lanes.newest(self.lane))
        self.greeting.begin(ordering)
        if self.lane in ordering.lanes.left:  # others may have to be told still
            self.left = True
            self.upkeep.call_all(now)
            return
        if ordering.members.get(self.lane) != self.address:
            ordering.change(Change(ChangeKind.JOINED, self.lane, self.address))
        if self.audience is not None:
            known = ordering.subscriptions.get(self.lane, ())
            if self.settings.topics is None:
                self.audience.mine = known
            elif known != self.audience.mine:
                self.say_subscription()
        self.upkeep.call_all(now)

    # -- what goes out -----------------------------------------------------------------------------

    def place(self, lane: str) -> int:
        """Return under which place one speaks of a lane."""
        return self.outflow.place(lane)

    @property
    def acknowledge_every_ns(self) -> int:
        """How long one waits to tell all what has come."""
        members = len(self.ordering.members) if self.ordering is not None else 0
        return self.settings.acknowledge_every_ns(members)

    def acknowledge(self) -> None:
        """Tell all what has come since the last time."""
        if not self.news or self.out:
            return
        self.news = False
        withheld = self._withheld()
        safe = ((n, min(c, withheld.get(n, c))) for n, c in self.safe().items())
        news = {n: c for n, c in safe if c > self._told.get(n, 0)}
        if news and self.greeted:
            self._told.update(news)
            frame = wire.pack_rows(wire.HAVE, [(self.place(n), c) for n, c in news.items()])
            for link in self.greeted.values():
                if link.member:  # else it is told all with its welcome
                    link.control.append(frame)

    def _withheld(self) -> dict[str, int]:
        """Return lane -> last batch to acknowledge, where too much waits for the application.

        Departed members send nothing more, so theirs are acknowledged.
        """
        ordering = self.ordering
        found = {} if ordering is None else ordering.backlog.withheld(self.inbox_limit)
        self._withholds = bool(found)
        gone = () if ordering is None else ordering.gone
        return {lane: number for lane, number in found.items() if lane not in gone}

    def consume(self, count: int) -> bool:
        """Note that the application needs no more room for the first `count` messages.

        Returns whether batches can be acknowledged now that were withheld.
        """
        if self.ordering is not None:
            self.ordering.backlog.consume(count)
            self.news = self.news or self._withholds
        return self._withholds

    def writable(self) -> list[int]:
        """Return the links for which `pull` may have something, or that are to be closed.

        Asked in every turn: to ask each of a hundred links costs more than a message does.
        """
        own, upto = self.lane, self.safe_number(self.lane)
        return [
            number
            for number, link in self.links.items()
            if link.control
            or link.closing
            or len(link.cursors) > (own in link.cursors)
            or link.cursors.get(own, upto) < upto
        ]

    def pull(self, number: int, budget: int, now: int) -> list[bytes]:
        """Return what is to be written on a link now: about `budget` bytes of batches."""
        link = self.links[number]
        batches: list[bytes] = []
        if link.member and not link.closing and not self.out and self.ordering is not None:
            batches = self.outflow.batches(link, budget)
        return self.outflow.written(link, batches, now)


def _drop_first(runs: deque[Said], count: int) -> None:
    """Remove the first `count` messages of runs."""
    while runs and count >= runs[0].live_count:
        count -= runs.popleft().live_count
    if runs and count > 0:
        runs[0] = runs[0].tail(runs[0].live_count - count)
