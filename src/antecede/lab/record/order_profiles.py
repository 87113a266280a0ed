"""How each order is driven when processes talk: what its group is made with, and what it is told.

Orders by clocks get bounds that hold for the emulated network (`live.regions`), orders by topics
subscriptions of everybody to every topic, the order of answers the message that is answered.
An order that is made of several roles is refused by the group itself.
"""

from __future__ import annotations

import inspect
from typing import Any

from antecede.core.clocks import Bounds
from antecede.core.group import ALIASES, Group, Message
from antecede.core.protocols import Addressing, flat_class
from antecede.core.protocols.topics import Subscriptions
from antecede.lab.record import workload
from antecede.lab.record.regions import CLOCK_OFFSET_MS

MOST_S = 1.5  # bound on delays that is told to orders by clocks: the emulated ones end far below it
TICK_S = 0.05  # so often is a group told the time
DRAIN_S = 1.6  # until every copy under way has arrived, and what waited for it is delivered


def options_for(order: str, names: tuple[str, ...]) -> dict[str, Any]:
    """Return what a group of this order is made with; raises LocalError for an unknown order."""
    taken = inspect.signature(flat_class(ALIASES.get(order, order)).__init__).parameters
    options: dict[str, Any] = {}
    if "bounds" in taken:
        options["bounds"] = Bounds(accuracy_s=CLOCK_OFFSET_MS / 1000, most_s=MOST_S)
    if "subscriptions" in taken:
        options["subscriptions"] = Subscriptions(dict.fromkeys(names, workload.TOPICS))
    return options


def group_of(name: str, names: tuple[str, ...], order: str) -> Group:
    """Return a member's group; raises LocalError for an order that cannot be recorded."""
    return Group(name, names, order=order, **options_for(order, names))


def drain_s(order: str, names: tuple[str, ...]) -> float:
    """Return how long members go on listening: orders by clocks wait for bounds to pass."""
    return DRAIN_S + (2 * MOST_S if "bounds" in options_for(order, names) else 0.0)


def arguments_of(order: str, saying: workload.Saying, answered: Message | None) -> dict[str, Any]:
    """Return what `Group.post` is told beside the payload and the time."""
    kind = flat_class(ALIASES.get(order, order))
    found: dict[str, Any] = {}
    if kind.addressing is Addressing.TOPICS:
        found["topics"] = (saying.topic,)
    if ALIASES.get(order, order) == "sb" and answered is not None:
        found["reply_to"] = answered
    return found
