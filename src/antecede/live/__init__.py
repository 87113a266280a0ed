"""Live groups: peers on networks that deliver messages after their causes.

`Peer` is a member of a group and `Tls` its certificate (`antecede[live]`).
"""

from typing import TYPE_CHECKING

from antecede.lazy import lazy_names

if TYPE_CHECKING:
    from antecede.live.events import Change, ChangeKind, Id, Message, MessagesAbandoned, View
    from antecede.live.peer import Peer
    from antecede.live.settings import DELIVER, ON_MISSING_PARENT
    from antecede.live.status import Status, format_status, status_from_json
    from antecede.live.timekeeping import BoundViolation, Delays, propose_bounds
    from antecede.live.tls import Tls
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "events": "Change ChangeKind Id Message MessagesAbandoned View",
            "peer": "Peer",
            "settings": "DELIVER ON_MISSING_PARENT",
            "status": "Status format_status status_from_json",
            "timekeeping": "BoundViolation Delays propose_bounds",
            "tls": "Tls",
        },
    )

__all__ = [
    "BoundViolation",
    "Change",
    "ChangeKind",
    "Delays",
    "Id",
    "Message",
    "MessagesAbandoned",
    "Peer",
    "Tls",
    "View",
    "propose_bounds",
]
