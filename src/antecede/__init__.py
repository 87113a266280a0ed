"""antecede: messages in the order their causes demand.

`Group` gives causal delivery over any transport; `help(Group)` lists the options of each order.
`Bounds` and `Subscriptions` are options of orders by clocks and topics, `antecede.errors` draws the
tree of errors. `antecede.core.oracle` says what came before what, `antecede.lab.check` judges
protocols, `antecede.tables.audit` and `antecede.tables.order` work on recorded traces, and
`antecede.spark` does so on Spark, in batch and in streams.
"""

from antecede.core.clocks.bounds import Bounds
from antecede.core.group.group import Group
from antecede.core.group.message import (
    Blocked,
    Envelope,
    GroupEffect,
    Message,
    Missing,
    Packet,
    Said,
    Sent,
    Stats,
    Thread,
)
from antecede.core.protocols.topics.subscriptions import Subscriptions
from antecede.errors import (
    AntecedeError,
    ConflictError,
    DecodeError,
    IncarnationError,
    LimitError,
    LocalError,
    MismatchError,
    ProtocolError,
    RemoteError,
    SequenceError,
    UnknownMemberError,
)

__version__ = "0.1.0"
__all__ = [
    "AntecedeError",
    "Blocked",
    "Bounds",
    "ConflictError",
    "DecodeError",
    "Envelope",
    "Group",
    "GroupEffect",
    "IncarnationError",
    "LimitError",
    "LocalError",
    "Message",
    "MismatchError",
    "Missing",
    "Packet",
    "ProtocolError",
    "RemoteError",
    "Said",
    "Sent",
    "SequenceError",
    "Stats",
    "Subscriptions",
    "Thread",
    "UnknownMemberError",
    "__version__",
]
