"""Progress in the logs of the external group: received, held and delivered entries."""

from __future__ import annotations

from collections.abc import Iterator

from antecede.live.hierarchy.origin import Place, Places


class LogProgress:
    """Entries by sender. The protocol's number of a message differs from its entry."""

    def __init__(self) -> None:
        self.fed: dict[str, int] = {}
        """Sender id -> newest entry received."""
        self.waiting: dict[str, dict[int, int]] = {}
        """Sender id -> number of a held message -> its entry."""
        self.notes: dict[str, set[int]] = {}
        """Sender id -> entries without message, before the next delivery."""
        self.given = Places()
        """Positions of all delivered or forwarded messages."""

    def note(self, lane: str, number: int) -> None:
        self.notes.setdefault(lane, set()).add(number)

    def wait(self, lane: str, message: int, number: int) -> None:
        self.waiting.setdefault(lane, {})[message] = number

    def had(self, lane: str, number: int) -> Place:
        """Record a delivered or forwarded message; return its position."""
        notes, count = self.notes.get(lane, set()), 0
        while number - 1 - count in notes:
            notes.discard(number - 1 - count)
            count += 1
        place = Place(lane, number, count)
        self.given.add(place)
        return place

    def had_waiting(self, lane: str, message: int) -> Place:
        """Record the delivery of a received message, by the protocol's number."""
        return self.had(lane, self.waiting[lane].pop(message))

    def entry_of(self, lane: str, message: int) -> int:
        """Return the entry of a message; behind the newest received for an unknown one."""
        number = self.waiting.get(lane, {}).get(message)
        return self.fed[lane] + 1 if number is None else number

    def list_done(self) -> Iterator[tuple[str, int]]:
        """Yield for each sender the entry up to which all was delivered."""
        for lane, fed in self.fed.items():
            waiting = self.waiting.get(lane)
            yield lane, min(waiting.values()) - 1 if waiting else fed

    def cut(self, lane: str, last: int) -> set[int]:
        """Forget the held messages behind an entry; return their protocol numbers."""
        waiting = self.waiting.get(lane, {})
        late = {message for message, entry in waiting.items() if entry > last}
        for message in late:
            del waiting[message]
        self.fed[lane] = max(last, 0)
        return late
