"""How far one is in the lanes of a mesh: what came, what of it waits, what was had."""

from __future__ import annotations

from collections.abc import Iterator

from antecede.live.hierarchy.origin import Place, Places


class Progress:
    """Entries by lane. A message has the protocol's number too, which is another one."""

    def __init__(self) -> None:
        self.fed: dict[str, int] = {}
        """Lane -> newest entry that came."""
        self.waiting: dict[str, dict[int, int]] = {}
        """Lane -> number of a held message -> its entry."""
        self.notes: dict[str, set[int]] = {}
        """Lane -> entries without a message, behind which none has been had."""
        self.given = Places()
        """Places of all messages that were delivered, or forwarded."""

    def note(self, lane: str, number: int) -> None:
        """An entry carries no message."""
        self.notes.setdefault(lane, set()).add(number)

    def wait(self, lane: str, message: int, number: int) -> None:
        """A message has come; it may be held."""
        self.waiting.setdefault(lane, {})[message] = number

    def had(self, lane: str, number: int) -> Place:
        """A message was delivered, or forwarded; returns its place."""
        notes, count = self.notes.get(lane, set()), 0
        while number - 1 - count in notes:
            notes.discard(number - 1 - count)
            count += 1
        place = Place(lane, number, count)
        self.given.add(place)
        return place

    def had_waiting(self, lane: str, message: int) -> Place:
        """The same of one that has come, by the protocol's number."""
        return self.had(lane, self.waiting[lane].pop(message))

    def entry_of(self, lane: str, message: int) -> int:
        """Return the entry of a message; behind the newest that came, where it is not here."""
        number = self.waiting.get(lane, {}).get(message)
        return self.fed[lane] + 1 if number is None else number

    def done(self) -> Iterator[tuple[str, int]]:
        """Yield for each lane up to which entry all was had."""
        for lane, fed in self.fed.items():
            waiting = self.waiting.get(lane)
            yield lane, min(waiting.values()) - 1 if waiting else fed

    def cut(self, lane: str, last: int) -> set[int]:
        """Forget what waits behind an entry; returns the protocol's numbers of these messages."""
        waiting = self.waiting.get(lane, {})
        late = {message for message, entry in waiting.items() if entry > last}
        for message in late:
            del waiting[message]
        self.fed[lane] = max(last, 0)
        return late
