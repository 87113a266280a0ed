"""Who answered what, for the threads that `Group.thread` shows: the newest messages alone."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable

from antecede.group.message import Id, Thread


class Threads:
    """The links of at most `most` messages, the oldest forgotten first."""

    def __init__(self, most: int, links: Iterable[tuple[Id, tuple[Id, ...]]] = ()) -> None:
        self.most = most
        self.parents: OrderedDict[Id, tuple[Id, ...]] = OrderedDict()
        """By message, in the order of their delivery."""
        self.answers: dict[Id, list[Id]] = {}
        for message, parents in links:
            self.add(message, parents)

    def add(self, message: Id, parents: tuple[Id, ...]) -> None:
        """Remember a message that was delivered or sent."""
        if not self.most or message in self.parents:
            return
        self.parents[message] = parents
        for parent in parents:
            self.answers.setdefault(parent, []).append(message)
        if len(self.parents) > self.most:
            oldest, above = self.parents.popitem(last=False)
            for parent in above:
                self.answers[parent].remove(oldest)
                if not self.answers[parent]:
                    del self.answers[parent]

    def root(self, message: Id) -> Id:
        """Return where the thread of a message begins, as far as it is remembered.

        Where a message answers several, the first counts.
        """
        while parents := self.parents.get(message):
            message = parents[0]
        return message

    def tree(self, root: Id, was_here: Callable[[Id], bool]) -> Thread:
        """Return a message with everything below it; without recursion, as threads can be deep.

        `was_here`: whether a message that is not remembered was delivered or sent here.
        """
        order = [root]
        for one in order:
            order += [answer for answer in self.answers.get(one, ()) if self._under(answer, one)]
        done: dict[Id, Thread] = {}
        for one in reversed(order):
            below = [answer for answer in self.answers.get(one, ()) if self._under(answer, one)]
            here = one in self.parents
            answers = tuple(done[answer] for answer in below)
            done[one] = Thread(one, here, answers, not here and was_here(one))
        return done[root]

    def _under(self, answer: Id, parent: Id) -> bool:
        """Tell whether an answer stands below this parent: the first that it names."""
        return self.parents[answer][0] == parent

    def __contains__(self, message: object) -> bool:
        return message in self.parents or message in self.answers

    def state(self) -> tuple[tuple[Id, tuple[Id, ...]], ...]:
        """Return the links as plain tuples."""
        return tuple(self.parents.items())
