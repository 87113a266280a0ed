"""Live groups: peers on networks whose messages are delivered after their causes.

`Peer` is the membership of a program in a group, `Tls` its certificate; `Tls` needs
`antecede[live]`.
"""

from typing import TYPE_CHECKING

from antecede.lazy import lazy_names

if TYPE_CHECKING:
    from antecede.live.events import Change, ChangeKind, GivenUp, Id, Message, View
    from antecede.live.peer import Peer
    from antecede.live.settings import MISSING_PARENT, RELEASE
    from antecede.live.status import Status, as_text, from_plain
    from antecede.live.timekeeping import Alarm, Delays, proposed_bounds
    from antecede.live.tls import Tls
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "events": "Change ChangeKind GivenUp Id Message View",
            "peer": "Peer",
            "settings": "MISSING_PARENT RELEASE",
            "status": "Status as_text from_plain",
            "timekeeping": "Alarm Delays proposed_bounds",
            "tls": "Tls",
        },
    )

__all__ = [
    "Alarm",
    "Change",
    "ChangeKind",
    "Delays",
    "GivenUp",
    "Id",
    "Message",
    "Peer",
    "Tls",
    "View",
    "proposed_bounds",
]
