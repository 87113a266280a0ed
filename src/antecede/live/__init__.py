"""Live groups: peers on real networks whose messages come in the order their causes demand.

`Peer` is a program's place in a group, `Tls` its certificate. `recording` is the recorder of
`antecede record`. Names are imported when they are first asked for; `Tls` needs `antecede[live]`.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from antecede.live.events import Change, ChangeKind, GivenUp, Id, Message, View
    from antecede.live.peer import Peer
    from antecede.live.timekeeping import Alarm, Delays, proposed_bounds
    from antecede.live.tls import Tls

_EVENTS = ("Change", "ChangeKind", "GivenUp", "Id", "Message", "View")
_HOME = {
    **dict.fromkeys(_EVENTS, "antecede.live.events"),
    **dict.fromkeys(("Alarm", "Delays", "proposed_bounds"), "antecede.live.timekeeping"),
    "Peer": "antecede.live.peer",
    "Tls": "antecede.live.tls",
}

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


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
