"""Timers of a peer: heartbeats, dials, requests, freeing and evictions."""

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
"""First and longest delay of a repeated dial; it doubles each time."""
PATIENCE_NS = NS
"""Time that the member with the smaller name waits for the other's dial."""
FREE_NS = NS // 4
FREE_FULL_NS = NS // 50
"""Interval of freeing while senders wait, or beyond `max_memory_bytes`."""
FALLBACK_TIMES = 2
FALLBACK_BYTES = 64 << 20
"""Beyond FALLBACK_TIMES its own budget, or this if less, a member evicts on its own: some sender
ignores the budgets."""
GUEST_NS = 60 * NS
GIVE_UP_NS = 2 * NS
"""Agreement time on a departed member's last batch before its dependents are abandoned."""
HELD_NS = NS // 250
TRIP = 5
"""Heartbeats between two measurements of the round trip on busy connections."""
STRANGERS = 256
"""Unknown senders requested on the word of one member, at most: each is announced to all."""
STORE_NS = NS
"""Time for the store to write the last batches of a departed member."""
AT_ONCE = "joined at the same time as another incarnation"
ASKING_NS = 2 * NS


class Timers:
    """Timers of a peer."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self.held = HeldSince()
        settings = node.settings
        self.clock_monitor = ClockMonitor(node.name, settings.bounds) if settings.timed else None
        self._ticked_ns: int | None = None
        self.hurried = False
        """True if there are members to dial at once."""
        self._acknowledged_ns = self._freed_ns = self._looked_ns = self._sought_ns = 0
        self._calls: dict[str, tuple[int, int]] = {}
        """Sender id -> (time of the next dial, delay after it)."""
        self._to_tell: list[str] = []
        """Addresses of earlier incarnations of this member, to be told of this one."""
        self._heard_ns: dict[str, int] = {}
        """Sender id -> time of the last connection, or of the first report."""
        self._gone_ns: dict[str, int] = {}
        """Sender id of a connected departed member -> time of that observation."""
        self._behind: dict[str, tuple[int, int]] = {}
        """Sender of which others have more -> (newest number here, start of that lag)."""
        self._strangers: dict[str, set[str]] = {}
        """Member -> unknown senders requested on its word."""
        self._agreed_ns: int | None = None
        self._asked: dict[str, tuple[int, int]] = {}
        """Sender -> (connection asked for its batches, time)."""
        self._laggards = SlowMembers()

    # -- connections -------------------------------------------------------------------------------

    def handle_connection(self, link: Link, now: int) -> None:
        """Handle a new connection to a member."""
        self._calls.pop(link.lane, None)
        self._heard_ns[link.lane] = now

    def handle_close(self, link: Link, now: int) -> None:
        """Handle the end of a member's connection."""
        self._heard_ns[link.lane] = now
        self._calls[link.lane] = self._first_call(link.lane, now)
        for lane in [lane for lane, (number, _) in self._asked.items() if number == link.number]:
            del self._asked[lane]

    def call_all(self, now: int) -> None:
        """Dial all members at once, after a join or a restart."""
        for lane in self._node.active.others():
            self._calls[lane] = now, FIRST_CALL_NS
        self.hurried = True

    def tell(self, address: str) -> None:
        """Dial an earlier incarnation of this member, which accepts its end from this name."""
        if address and address != self._node.address:
            self._to_tell.append(address)
            self.hurried = True

    def _first_call(self, lane: str, now: int) -> tuple[int, int]:
        first = now if self._node.lane > lane else now + PATIENCE_NS
        return first, FIRST_CALL_NS

    def dials(self, now: int) -> list[tuple[str, str]]:
        """Return (sender id, address) of the members to dial now, once each."""
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
                or (node.left and lane not in node.list_unacknowledged())
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
        """Return the latest time of the next `tick`."""
        node = self._node
        # More often than a heartbeat; otherwise the process would seem suspended.
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
        """Run the timers."""
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
            node.count_votes(now)
            if node.out:
                return
            self._end_gone(now)
            self._end_lives_beside()
            self._forget_guests(now)
            self._give_up(now)
            self._evict_silent(now)
        if now - self._freed_ns >= self._free_every_ns():
            self._freed_ns = now
            self._free(now)
            self.held.sample(node.active.group, now)

    def _forgive(self, now: int) -> None:
        """Excuse the silence of other members while this process was suspended."""
        before, self._ticked_ns = self._ticked_ns, now
        slept = now - before if before is not None else 0
        if slept > self._node.settings.heartbeat_ns + FREE_NS:  # more than between two ticks
            self._node.flow.forgive()
            for link in self._node.links.values():
                link.heard_ns = max(link.heard_ns, now - self._node.settings.heartbeat_ns)

    def _keep_alive(self, now: int) -> None:
        """Close silent connections, and send heartbeats."""
        node, settings = self._node, self._node.settings
        unheard = [node.place(lane) for lane in self.unheard()]
        ping = wire.pack_frame(wire.PING, *map(varint, (now, *unheard)))
        for link in node.links.values():
            if link.closing:
                continue
            if not link.lane and now - link.up_ns > settings.handshake_timeout_ns:
                node.end(link, "no HELLO in time")
            elif now - link.heard_ns > settings.failure_timeout_ns:
                node.end(link, "silent")
            elif link.lane and self._is_due(link, bool(unheard), now):
                link.pinged_ns, link.told_unheard = now, bool(unheard)
                link.control.append(ping)

    def _is_due(self, link: Link, unheard: bool, now: int) -> bool:
        """Return whether a PING is due. Any bytes are a sign of life. On a busy connection PINGs
        are rare and measure the round trip. A list of unheard members is sent each time.
        """
        heartbeat = self._node.settings.heartbeat_ns
        if link.pinged_ns == link.up_ns:  # the first one, for the round trip
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

    # -- requests ----------------------------------------------------------------------------------

    def _look_for_missing(self, now: int) -> None:
        """Request batches that their sender does not send."""
        ordering = self._node.active
        behind = {}
        for lane, known in self.find_newest().items():
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
        """Return the time before a request: the sender may be about to send. For a disconnected
        sender it is short, since its last messages block others.
        """
        repair_delay_ns = self._node.settings.repair_delay_ns
        return repair_delay_ns if lane in self._node.greeted else repair_delay_ns // 16

    def _check_lost(self, behind: dict[str, tuple[int, int]], now: int) -> None:
        """Leave the group for good if no connected member has a missing batch any more.
        Disconnected members may still have it. Wait as long as for their eviction.
        """
        node, after = self._node, self._node.settings.evict_after_ns
        if not node.greeted or (after is None and self.unheard()):
            return
        heard = node.active.lanes.heard
        for lane, (newest, since) in behind.items():
            # Members with no more than this one cannot help. A faulty member may report batches
            # that never existed. So more than half must agree.
            given_up = [
                link.given_up.get(lane, 0) > newest + 1
                for link in node.greeted.values()
                if heard.get(link.lane, {}).get(lane, 0) > newest
            ]
            believed = all(given_up) and 2 * len(given_up) > len(node.greeted)
            if believed and now - since > max(GIVE_UP_NS, after or 0):
                node.go_out(
                    f"no member has batch {newest + 1} of {lane} any more: its holders have "
                    "departed, or freed it while this member was away; join again"
                )
                return

    def find_newest(self) -> dict[str, int]:
        """Return sender -> newest number at connected members, where some member has more."""
        known: dict[str, int] = {}
        heard = self._node.active.lanes.heard
        ahead = self._node.active.lanes.ahead()
        if ahead:
            tables = [heard.get(link.lane, {}) for link in self._node.greeted.values()]
            for lane in ahead:
                known[lane] = max((table.get(lane, 0) for table in tables), default=0)
        return known

    def _ask(self, lane: str, newest: int, now: int) -> None:
        """Request the batches from a member that has them; from another one after a timeout."""
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
            able = [link for link in able if self._accepts_report(link.name, lane)]
        if not able:
            return
        able.sort(key=lambda link: (asked is not None and link.number <= asked[0], link.number))
        self._stop_asking(lane)
        self._asked[lane] = able[0].number, now
        row = node.place(lane), newest
        able[0].control.append(wire.pack_rows(wire.NAK, [row]))

    def ask_another(self, link: Link, lane: str) -> None:
        """The asked member cannot supply the batches. Ask another member next."""
        asked = self._asked.get(lane)
        if asked is not None and asked[0] == link.number:
            self._asked[lane] = link.number, -ASKING_NS

    def ask_now(self, now: int) -> dict[str, str]:
        """Request all missing batches at once: sender id -> member asked."""
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

    def _accepts_report(self, name: str, lane: str) -> bool:
        """Return whether a member's report of an unknown sender is accepted."""
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
        """Abandon batches whose causes no member has. All members must be connected and have the
        same batches of all departed ones for a while. Then all come to the same result.
        """
        ordering = self._node.active
        if not ordering.gone or not self._is_agreed():
            self._agreed_ns = None
            return
        self._agreed_ns = now if self._agreed_ns is None else self._agreed_ns
        if now - self._agreed_ns >= GIVE_UP_NS:
            for lane, (last, lacking) in ordering.hopeless().items():
                if lane not in ordering.cuts:
                    ordering.cut(lane, last, lacking)

    def _is_agreed(self) -> bool:
        """Return whether all members are connected and agree on the departed senders."""
        node = self._node
        ordering = node.active
        waits = ordering.group.stats().held or ordering.list_stalled()
        if not waits or self.unheard():
            return False
        heard, newest = ordering.lanes.heard, ordering.lanes.newest
        return all(
            heard.get(link.lane, {}).get(lane, 0) == newest(lane)
            for link in node.greeted.values()
            for lane in ordering.gone
        )

    # -- freeing -----------------------------------------------------------------------------------

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
            self._laggards.reset()
            return
        if (slow := flow.slow(now)) is not None:
            self._evict_slow(*slow)
            return
        # Senders that respect the limits stay below this.
        at_most = FALLBACK_TIMES * max(flow.budget, FALLBACK_BYTES)
        kept = lanes.bytes + lanes.spilled_bytes
        kept -= self._count_undeliverable() if kept > at_most else 0
        if kept <= at_most:
            self._laggards.reset()
            return
        behind = self._behind_here()
        slowest = self._laggards.sample(kept, at_most, at_most // FALLBACK_TIMES, behind)
        if slowest is not None:
            self._evict_slow(slowest, laggards.words(kept, behind[slowest]))

    def _count_undeliverable(self) -> int:
        """Return the bytes of departed senders that cannot be delivered, which no member causes."""
        ordering = self._node.active
        done, lanes = ordering.find_done(), ordering.lanes
        return sum(
            lanes.count_retained(lane, done.get(lane, 0), lanes.newest(lane))
            for lane in ordering.gone
            if lanes.newest(lane) > done.get(lane, 0)
        )

    def _evict_slow(self, lane: str, why: str) -> None:
        """Evict a member, or drop a connection that is not a member's."""
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
        """Return the backlog of each: bytes that it lacks, and undelivered bytes that it sent."""
        ordering = self._node.active
        lanes, done = ordering.lanes, ordering.find_done()
        waits = {*ordering.others(), *ordering.guests, *self._node.greeted} - ordering.gone
        found: dict[str, Behind] = {}
        for one in waits:
            table, newest = lanes.heard.get(one, {}), lanes.newest
            lacks = sum(
                lanes.count_retained(name, table.get(name, 0), min(upto, newest(name)))
                for name, upto in done.items()
                if name != one  # it has its own batches
            )
            said = lanes.count_retained(one, done.get(one, 0), newest(one)) if newest(one) else 0
            has = sum(number for name, number in table.items() if name != one)
            # If most of it are its own batches, neither sending nor receiving is progress.
            found[one] = Behind(lacks + said, has if lacks >= said else done.get(one, 0))
        return found

    # -- departed members --------------------------------------------------------------------------

    def _end_gone(self, now: int) -> None:
        """Reject departed members. They get an acknowledgement before: a leaving one may wait for
        it.
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
        """End all but one of several incarnations that joined at the same time. A joining
        incarnation ends those that it knows. These do not know each other, so the one with the
        greatest sender id stays.
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
        ordering = self._node.active
        for lane in list(ordering.guests):
            since = self._heard_ns.setdefault(lane, now)
            if lane not in self._node.greeted and now - since > GUEST_NS:
                del ordering.guests[lane]
                ordering.lanes.heard.pop(lane, None)

    def _evict_silent(self, now: int) -> None:
        """Evict members that no connected member has heard for long enough."""
        node, after = self._node, self._node.settings.evict_after_ns
        if node.in_minority or node.left:  # the eviction would arrive after a reunion, or too late
            return
        for lane in self.unheard():
            since = self._heard_ns.setdefault(lane, now)
            if after is None or now - since <= after:
                continue
            if not self._may_evict():
                return
            if not all(lane in link.unheard for link in node.greeted.values()):
                continue
            node.evict(lane, f"unheard for {(now - since) // 10**6} ms")

    def _may_evict(self) -> bool:
        """Return whether this member is in the larger part of the group. So two parts never evict
        each other. Of two halves it is the one with the least name.
        """
        node = self._node
        members = node.active.members
        heard = [lane for lane in members if lane == node.lane or lane in node.greeted]
        return 2 * len(heard) > len(members) or (
            2 * len(heard) == len(members) and min(members) in heard
        )
