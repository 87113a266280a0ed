"""Groups: a protocol with member names, bytes and limits (docs/design/group.md)."""

from typing import TYPE_CHECKING

from antecede.lazy import lazy_names

if TYPE_CHECKING:
    from antecede.core.group.group import Group
    from antecede.core.group.message import (
        Envelope,
        GroupEffect,
        HeldMessage,
        Id,
        Message,
        Packet,
        Thread,
    )
    from antecede.core.group.options import ALIASES, Limits
    from antecede.core.group.state import Threads
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "group": "Group",
            "message": "HeldMessage Envelope GroupEffect Id Message Packet Thread",
            "options": "ALIASES Limits",
            "state": "Threads",
        },
    )
