"""What time brings about: heartbeats, calls, requests for what is missing, freeing, putting out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from antecede.core.clocks.encoding import varint
from antecede.live import laggards, wire
from antecede.live.events import Change, ChangeKind, member_of
from antecede.live.held import HeldSince
from antecede.live.laggards import Behind, SlowMembers
from antecede.live.links import Link
from antecede.live.settings import NS
from antecede.live.timekeeping import ClockMonitor

if TYPE_CHECKING:
    from antecede.live.node import Node

FIRST_CALL_NS, LAST_CALL_NS = NS // 10, NS // 2
"""Who does not answer is called again after the first, then twice as long, up to the last."""
PATIENCE_NS = NS
"""How long the member with the smaller name waits for the other's call."""
FREE_NS = NS // 4
FREE_FULL_NS = NS // 50
"""So often batches are freed while senders wait for that, or they are more than `memory`."""
FALLBACK_TIMES = 2
FALLBACK_BYTES = 64 << 20
"""Beyond so many times its own budget, or this where that is less, a member evicts by itself: some
sender goes on without heeding the others' budgets."""
GUEST_NS = 60 * NS
"""So long a newcomer that was let in may take to begin."""
GIVE_UP_NS = 2 * NS
"""So long all must agree on what there is of those who are gone, before what waits is given up."""
HELD_NS = NS // 250
"""So often the clock is looked at while something waits for it (orders by clocks)."""
TRIP = 5
"""Heartbeats until the round trip is measured again where signs of life are not needed."""
STRANGERS = 256
"""Lanes that are not here and are asked for because one member speaks of them, at most: each is
named to all from then on."""
STORE_NS = NS
"""Time for the store to write the last batches of a member that is out."""
AT_ONCE = "came at the same time as another life of it"
ASKING_NS = 2 * NS
"""After so long without an answer somebody else is asked."""


class Timers:
    """A peer's timers."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self.held = HeldSince()
        settings = node.settings
        self.clock_monitor = ClockMonitor(node.name, settings.bounds) if settings.timed else None
        """Clocks and delays; None: the order goes by none."""
        self._ticked_ns: int | None = None
        self.hurried = False
        """Whether there is something to do at once: whom to call."""
        self._acknowledged_ns = self._freed_ns = self._looked_ns = self._sought_ns = 0
        self._calls: dict[str, tuple[int, int]] = {}
        """Lane -> (when it is called next, how long after that)."""
        self._to_tell: list[str] = []
        """Addresses of former lives of this member: to be told, once, that another has begun."""
        self._heard_ns: dict[str, int] = {}
        """Lane -> when that member was last connected, or learnt of."""
        self._gone_ns: dict[str, int] = {}
        """Lane of a connected member that is out -> when that was seen."""
        self._behind: dict[str, tuple[int, int]] = {}
        """Lane of which others have more -> (its newest here, since when that is so)."""
        self._strangers: dict[str, set[str]] = {}
        """Name of a member -> lanes that were asked for because it spoke of them."""
        self._agreed_ns: int | None = None
        self._asked: dict[str, tuple[int, int]] = {}
        """Lane -> (link that was asked for it, when)."""
        self._laggards = SlowMembers()

    # -- members who come and go -------------------------------------------------------------------

    def met(self, link: Link, now: int) -> None:
        """A member is connected."""
        self._calls.pop(link.lane, None)
        self._heard_ns[link.lane] = now

    def lost(self, link: Link, now: int) -> None:
        """A member is not connected any more."""
        self._heard_ns[link.lane] = now
        self._calls[link.lane] = self._first_call(link.lane, now)
        for lane in [lane for lane, (number, _) in self._asked.items() if number == link.number]:
            del self._asked[lane]

    def call_all(self, now: int) -> None:
        """As one who has just joined or restarted: call everybody at once."""
        for lane in self._node.active.others():
            self._calls[lane] = now, FIRST_CALL_NS
        self.hurried = True

    def tell(self, address: str) -> None:
        """Call a former life of this member, which is over: by its own name it believes that."""
        if address and address != self._node.address:
            self._to_tell.append(address)
            self.hurried = True

    def _first_call(self, lane: str, now: int) -> tuple[int, int]:
        first = now if self._node.lane > lane else now + PATIENCE_NS
        return first, FIRST_CALL_NS

    def dials(self, now: int) -> list[tuple[str, str]]:
        """Return, once, (lane, address) of the members to call now."""
        node, found = self._node, list[tuple[str, str]]()
        self.hurried = False
        if node.ordering is None or node.out or node.parted:
            return []
        found += [(node.lane, address) for address in self._to_tell]
        self._to_tell.clear()
        for lane in node.ordering.others():
            address = node.ordering.members[lane]
            if (
                lane in node.greeted
                or not address
                or (node.left and lane not in node.unacknowledged_members())
            ):
                continue
            due, wait = self._calls.setdefault(lane, self._first_call(lane, now))
            delayed = node.rejections.dial_ns(member_of(lane))
            if due < delayed:
                self._calls[lane] = delayed, FIRST_CALL_NS
            elif now >= due:
                found.append((lane, address))
                self._calls[lane] = now + wait, min(2 * wait, LAST_CALL_NS)
        return found

    def due(self, now: int) -> int:
        """Return when `tick` is to be called at the latest, when nothing else happens."""
        node = self._node
        # More often than a heartbeat: who ticks more seldom would seem to have slept.
        next_ns = now + min(self._free_every_ns(), node.settings.heartbeat_ns // 2)
        if self._behind or (node.ordering is not None and node.ordering.lanes.ahead()):
            next_ns = now + NS // 50
        ordering = node.ordering
        if self.clock_monitor is not None and ordering is not None and ordering.group.stats().held:
            next_ns = min(next_ns, now + HELD_NS)
        if node.news:
            next_ns = min(next_ns, self._acknowledged_ns + node.acknowledge_every_ns)
        calls = [due for lane, (due, _) in self._calls.items() if lane not in node.greeted]
        return max(now, min([next_ns, *calls]))

    # -- time --------------------------------------------------------------------------------------

    def tick(self, now: int) -> None:
        """Let time pass."""
        node, settings = self._node, self._node.settings
        self._forgive(now)
        self._keep_alive(now)
        node.rejections.settle(node.links.values(), now)
        if node.ordering is None or node.out:
            return
        if now - self._acknowledged_ns >= node.acknowledge_every_ns:
            self._acknowledged_ns = now
            node.acknowledge()
        if now - self._sought_ns >= settings.repair_delay_ns // 16:
            self._sought_ns = now
            self._look_for_missing(now)
            if node.out:
                return
        if now - self._looked_ns >= settings.repair_delay_ns // 4:
            self._looked_ns = now
            node.weigh(now)
            if node.out:
                return
            self._end_gone(now)
            self._end_lives_beside()
            self._forget_guests(now)
            self._give_up(now)
            self._put_out(now)
        if now - self._freed_ns >= self._free_every_ns():
            self._freed_ns = now
            self._free(now)
            self.held.look(node.active.group, now)

    def _forgive(self, now: int) -> None:
        """Where it was oneself who slept, nobody was silent meanwhile."""
        before, self._ticked_ns = self._ticked_ns, now
        slept = now - before if before is not None else 0
        if slept > self._node.settings.heartbeat_ns + FREE_NS:  # more than between two ticks
            self._node.flow.forgive()
            for link in self._node.links.values():
                link.heard_ns = max(link.heard_ns, now - self._node.settings.heartbeat_ns)

    def _keep_alive(self, now: int) -> None:
        """End the links that are silent, and see that one's own are not."""
        node, settings = self._node, self._node.settings
        unheard = [node.place(lane) for lane in self.unheard()]
        ping = wire.pack_frame(wire.PING, *map(varint, (now, *unheard)))
        for link in node.links.values():
            if link.closing:
                continue
            if not link.lane and now - link.up_ns > settings.handshake_timeout_ns:
                node.end(link, "no greeting came")
            elif now - link.heard_ns > settings.failure_timeout_ns:
                node.end(link, "it is silent")
            elif link.lane and self._is_due(link, bool(unheard), now):
                link.pinged_ns, link.told_unheard = now, bool(unheard)
                link.control.append(ping)

    def _is_due(self, link: Link, unheard: bool, now: int) -> bool:
        """Whether the other end is to be asked for a sign of life.

        It is one to the other, and so is all else that is written: where something is, it is
        asked but now and then, for the round trip. But who is not heard is told each time.
        """
        heartbeat = self._node.settings.heartbeat_ns
        if link.pinged_ns == link.up_ns:  # never yet: at once, for the round trip
            return True
        if now - link.pinged_ns < heartbeat:
            return False
        quiet = now - link.spoke_ns >= heartbeat
        return quiet or unheard or link.told_unheard or now - link.pinged_ns >= TRIP * heartbeat

    def unheard(self) -> list[str]:
        """Return the members that are not connected here."""
        ordering = self._node.ordering
        if ordering is None:
            return []
        return [lane for lane in ordering.others() if lane not in self._node.greeted]

    # -- what is missing ---------------------------------------------------------------------------

    def _look_for_missing(self, now: int) -> None:
        """Ask others for batches that their owner does not send."""
        ordering = self._node.active
        behind = {}
        for lane, known in self.known_newest().items():
            newest = ordering.lanes.newest(lane)
            if known <= newest or lane == self._node.lane or not ordering.takes(lane):
                continue
            before = self._behind.get(lane)
            behind[lane] = before if before is not None and before[0] == newest else (newest, now)
        self._behind = behind
        for lane, (newest, since) in behind.items():
            if now - since >= self._patience_ns(lane):
                self._ask(lane, newest, now)
        if self._node.topic_filter is not None:
            self._node.topic_filter.settle(behind, now)
        self._check_lost(behind, now)
        for lane in [lane for lane in self._asked if lane not in behind]:
            if lane in self._node.greeted:
                self._stop_asking(lane)

    def _patience_ns(self, lane: str) -> int:
        """Return how long one is behind in a lane before one asks: its owner may be about to send.

        Who is not connected is not: what depends on its last words waits for them.
        """
        repair_delay_ns = self._node.settings.repair_delay_ns
        return repair_delay_ns if lane in self._node.greeted else repair_delay_ns // 16

    def _check_lost(self, behind: dict[str, tuple[int, int]], now: int) -> None:
        """Where nobody who is connected has any more what one lacks, there is only a new beginning.

        Who is not connected may still have it: one waits as long as one would wait for that member.
        """
        node, after = self._node, self._node.settings.evict_after_ns
        if not node.greeted or (after is None and self.unheard()):
            return
        heard = node.active.lanes.heard
        for lane, (newest, since) in behind.items():
            # Who has no more of it than oneself cannot help, and waits likewise. But it may be that
            # there never was more, and one who lies says so: that takes more than half.
            given_up = [
                link.given_up.get(lane, 0) > newest + 1
                for link in node.greeted.values()
                if heard.get(link.lane, {}).get(lane, 0) > newest
            ]
            believed = all(given_up) and 2 * len(given_up) > len(node.greeted)
            if believed and now - since > max(GIVE_UP_NS, after or 0):
                node.go_out(
                    f"batch {newest + 1} of {lane} is nobody's any more: all who had it are gone, "
                    "or gave it up while this member was away. Join anew"
                )
                return

    def known_newest(self) -> dict[str, int]:
        """Return what those who are connected have of the lanes of which anybody has more."""
        known: dict[str, int] = {}
        heard = self._node.active.lanes.heard
        ahead = self._node.active.lanes.ahead()
        if ahead:
            tables = [heard.get(link.lane, {}) for link in self._node.greeted.values()]
            for lane in ahead:
                known[lane] = max((table.get(lane, 0) for table in tables), default=0)
        return known

    def _ask(self, lane: str, newest: int, now: int) -> None:
        """Ask a member that has it; another one than last time, where that one did not answer."""
        node = self._node
        asked = self._asked.get(lane)
        if asked is not None and asked[0] in node.links and now - asked[1] < ASKING_NS:
            return
        heard = node.active.lanes.heard
        able = [
            link
            for link in node.greeted.values()
            if heard.get(link.lane, {}).get(lane, 0) > newest
            and link.lane != lane
            and link.given_up.get(lane, 0) <= newest + 1
            and link.reader.lacks.get(lane, (0, 0))[0] != newest + 1
            and lane not in link.distrusted
        ]
        if not newest:
            able = [link for link in able if self._believed(link.name, lane)]
        if not able:
            return
        able.sort(key=lambda link: (asked is not None and link.number <= asked[0], link.number))
        self._stop_asking(lane)
        self._asked[lane] = able[0].number, now
        row = node.place(lane), newest
        able[0].control.append(wire.pack_rows(wire.NAK, [row]))

    def ask_another(self, link: Link, lane: str) -> None:
        """Who was asked for a lane cannot give what one lacks: somebody else is asked next."""
        asked = self._asked.get(lane)
        if asked is not None and asked[0] == link.number:
            self._asked[lane] = link.number, -ASKING_NS

    def ask_now(self, now: int) -> dict[str, str]:
        """Ask at once, and anew, for what others have and is not here: lane -> whom (a lane)."""
        if self._node.ordering is None or self._node.out:
            return {}
        self._look_for_missing(now)
        for lane, (newest, _) in self._behind.items():
            asked = self._asked.get(lane)
            if asked is not None:
                self._asked[lane] = asked[0], now - ASKING_NS
            self._ask(lane, newest, now)
        links = self._node.links
        asked_of = {lane: links.get(number) for lane, (number, _) in self._asked.items()}
        return {lane: link.lane for lane, link in asked_of.items() if link is not None}

    def _believed(self, name: str, lane: str) -> bool:
        """Whether there may be such a lane because that member says so."""
        lanes, known = self._strangers.setdefault(name, set()), self._node.active.lanes
        lanes.difference_update([one for one in lanes if known.newest(one)])
        if lane not in lanes and len(lanes) >= STRANGERS:
            return False
        lanes.add(lane)
        return True

    def _stop_asking(self, lane: str) -> None:
        asked = self._asked.pop(lane, None)
        link = self._node.links.get(asked[0]) if asked is not None else None
        if link is not None:
            row = self._node.place(lane), wire.NO_MORE
            link.control.append(wire.pack_rows(wire.NAK, [row]))

    def _give_up(self, now: int) -> None:
        """Give up what depends on messages that nobody has any more.

        That needs all members to be connected, and to have the same of all who are gone, for a
        while; then all come to the same result.
        """
        ordering = self._node.active
        if not ordering.gone or not self._agreed():
            self._agreed_ns = None
            return
        self._agreed_ns = now if self._agreed_ns is None else self._agreed_ns
        if now - self._agreed_ns >= GIVE_UP_NS:
            for lane, (last, lacking) in ordering.hopeless().items():
                if lane not in ordering.cuts:
                    ordering.cut(lane, last, lacking)

    def _agreed(self) -> bool:
        """Whether all members are connected and have the same of those who are gone."""
        node = self._node
        ordering = node.active
        waits = ordering.group.stats().held or ordering.stalled()
        if not waits or self.unheard():
            return False
        heard, newest = ordering.lanes.heard, ordering.lanes.newest
        return all(
            heard.get(link.lane, {}).get(lane, 0) == newest(lane)
            for link in node.greeted.values()
            for lane in ordering.gone
        )

    # -- what nobody needs -------------------------------------------------------------------------

    def _free_every_ns(self) -> int:
        ordering, settings = self._node.ordering, self._node.settings
        crowded = ordering is not None and ordering.lanes.bytes > settings.max_memory_bytes
        return FREE_FULL_NS if crowded or self._node.flow.is_full else FREE_NS

    def _free(self, now: int) -> None:
        node = self._node
        ordering, lanes, flow = node.active, node.active.lanes, node.flow
        ordering.free(node.greeted)
        if node.durable:
            lanes.spill(node.settings.max_memory_bytes, node.safe())
        flow.update()
        if not node.is_reading or node.in_minority or node.left:
            flow.forgive()
            self._laggards.rest()
            return
        if (slow := flow.slow(now)) is not None:
            self._send_away(*slow)
            return
        # Senders that heed their limits stay below this, whatever anybody's limits are.
        at_most = FALLBACK_TIMES * max(flow.budget, FALLBACK_BYTES)
        kept = lanes.bytes + lanes.spilled_bytes
        kept -= self._left_behind() if kept > at_most else 0
        if kept <= at_most:
            self._laggards.rest()
            return
        behind = self._behind_here()
        slowest = self._laggards.judge(kept, at_most, at_most // FALLBACK_TIMES, behind)
        if slowest is not None:
            self._send_away(slowest, laggards.words(kept, behind[slowest]))

    def _left_behind(self) -> int:
        """Return the bytes of those who are gone that cannot be delivered: nobody's fault now."""
        ordering = self._node.active
        done, lanes = ordering.done(), ordering.lanes
        return sum(
            lanes.kept(lane, done.get(lane, 0), lanes.newest(lane))
            for lane in ordering.gone
            if lanes.newest(lane) > done.get(lane, 0)
        )

    def _send_away(self, lane: str, why: str) -> None:
        """Keep nothing more for somebody, a member or not."""
        node = self._node
        ordering = node.active
        if lane in ordering.members:
            node.evict(lane, why)
            return
        ordering.guests.pop(lane, None)
        ordering.lanes.heard.pop(lane, None)
        link = node.greeted.get(lane)
        if link is not None and not link.closing:
            node.end(link, why)

    def _behind_here(self) -> dict[str, Behind]:
        """Return what is kept for each: it lacks what is delivered here, or said what is not."""
        ordering = self._node.active
        lanes, done = ordering.lanes, ordering.done()
        waits = {*ordering.others(), *ordering.guests, *self._node.greeted} - ordering.gone
        found: dict[str, Behind] = {}
        for one in waits:
            table, newest = lanes.heard.get(one, {}), lanes.newest
            lacks = sum(
                lanes.kept(name, table.get(name, 0), min(upto, newest(name)))
                for name, upto in done.items()
                if name != one  # its own it has: who only sends has nothing to say
            )
            said = lanes.kept(one, done.get(one, 0), newest(one)) if newest(one) else 0
            has = sum(number for name, number in table.items() if name != one)
            # Where more of it is what it said, to say on is not to come nearer, nor to read.
            found[one] = Behind(lacks + said, has if lacks >= said else done.get(one, 0))
        return found

    # -- who is gone -------------------------------------------------------------------------------

    def _end_gone(self, now: int) -> None:
        """Take nothing more from who is out, whether it heeds that or not.

        It is told before what is here of it: perhaps it has left, and waits for that.
        """
        node = self._node
        for lane, link in node.greeted.items():
            if lane not in node.active.gone or link.closing:
                continue
            had = node.safe_number(lane)
            since = self._gone_ns.setdefault(lane, now)
            if had < node.active.lanes.newest(lane) and now - since < STORE_NS:
                continue
            del self._gone_ns[lane]
            link.control.append(wire.pack_rows(wire.ACK, [(node.place(lane), had)]))
            node.end(link, node.why_out(lane))

    def _end_lives_beside(self) -> None:
        """Of lives of one's own name that came in at once, none told of the others, one stays.

        Who is let in says that the lives it is told of are over. Of these neither is the later one,
        and all of them know that it is the one with the greatest lane.
        """
        node, ordering = self._node, self._node.active
        beside = [one for one in ordering.others() if member_of(one) == node.name]
        if not beside or node.left or node.in_minority or max(beside) > node.lane:
            return
        for lane in beside:
            self.tell(ordering.members[lane])
            ordering.change(Change(ChangeKind.LEFT, lane, AT_ONCE))
        ordering.flush()

    def _forget_guests(self, now: int) -> None:
        """Keep nothing more for newcomers that were let in and never began."""
        ordering = self._node.active
        for lane in list(ordering.guests):
            since = self._heard_ns.setdefault(lane, now)
            if lane not in self._node.greeted and now - since > GUEST_NS:
                del ordering.guests[lane]
                ordering.lanes.heard.pop(lane, None)

    def _put_out(self, now: int) -> None:
        """Put out whom nobody who is connected has heard for long enough."""
        node, after = self._node, self._node.settings.evict_after_ns
        if (
            node.in_minority or node.left
        ):  # it would be said when the other half is back, or too late
            return
        for lane in self.unheard():
            since = self._heard_ns.setdefault(lane, now)
            if after is None or now - since <= after:
                continue
            if not self._may_put_out():
                return
            if not all(lane in link.unheard for link in node.greeted.values()):
                continue
            node.evict(lane, f"unheard for {(now - since) // 10**6} ms")

    def _may_put_out(self) -> bool:
        """Whether one is in the larger part of the group, so that two parts never put each other
        out; of two halves it is the one with the least name.
        """
        node = self._node
        members = node.active.members
        heard = [lane for lane in members if lane == node.lane or lane in node.greeted]
        return 2 * len(heard) > len(members) or (
            2 * len(heard) == len(members) and min(members) in heard
        )
