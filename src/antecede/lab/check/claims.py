"""Claims of `stable()` and `knows()` on messages of other members.

A claim may be smaller than the truth, never larger.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

from antecede.core.protocols import Protocol
from antecede.errors import LocalError
from antecede.lab.check.harness.effects import ContractError
from antecede.lab.check.harness.guarded_calls import call_guarded


class DeliveryClaim(NamedTuple):
    """Claim that member `about` has message `number` of `sender`."""

    about: int
    sender: int
    number: int
    is_stable: bool
    """Claimed by `stable()`; otherwise by `knows()`."""

    def describe_error(self, names: Mapping[int, str], label: str) -> str:
        """Return why the claim is wrong; `label`: of the message, "" if it was never sent."""
        about, sender = names[self.about], names[self.sender]
        method = "stable()" if self.is_stable else f"knows({about}, {sender})"
        if not label:
            return f"{method} returns {self.number} for {sender}, which has sent fewer messages"
        holder = "every member" if self.is_stable else about
        return f"{method} claims that {holder} has {label}, which {about} lacks"


def has_claims(member: Protocol) -> bool:
    """Return True if a protocol has `stable()` or `knows(member, of)`."""
    return _has_method(member, "stable", 0) or _has_method(member, "knows", 2)


def find_claims(
    member: Protocol, present: Sequence[int], senders: Iterable[int]
) -> Iterator[DeliveryClaim]:
    """Yield the largest claims about other members; raises ContractError. LocalError: no claim."""
    others = [about for about in present if about != member.me]
    if _has_method(member, "stable", 0):
        stable = _query(member, "stable")
        if stable is not None and not isinstance(stable, Mapping):
            raise ContractError(f"stable() must return numbers by member, not {stable!r}")
        for sender, number in (stable or {}).items():
            if _check_number("stable()", number):
                yield from (DeliveryClaim(about, sender, number, True) for about in others)
    if _has_method(member, "knows", 2):
        for about in others:
            for sender in senders:
                number = _query(member, "knows", about, sender)
                if number is not None and _check_number("knows()", number):
                    yield DeliveryClaim(about, sender, number, False)


def _query(member: Protocol, method: str, *arguments: int) -> Any:
    try:
        return call_guarded(getattr(member, method), *arguments)
    except LocalError:
        return None


def _check_number(what: str, number: Any) -> int:
    if type(number) is not int or number < 0:
        raise ContractError(f"{what} must return a number of messages from 0, not {number!r}")
    return number


def _has_method(member: Protocol, method: str, count: int) -> bool:
    return _accepts(getattr(type(member), method, None), count)


@cache
def _accepts(method: Any, count: int) -> bool:
    if not callable(method):
        return False
    try:
        inspect.signature(method).bind(None, *range(count))
    except (TypeError, ValueError):
        return False
    return True
