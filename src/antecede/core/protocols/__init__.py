"""Ordering protocols, one published protocol a file. Start with `base` and `basic.fifo`."""

from typing import TYPE_CHECKING

from antecede.lazy import lazy_names

if TYPE_CHECKING:
    from antecede.core.protocols.base import (
        DUPLICATE,
        NOTHING,
        OWN,
        Addressing,
        Deliver,
        DeliverIncomplete,
        Discard,
        Effect,
        Guarantee,
        Held,
        Hold,
        MessageId,
        Protocol,
        Relation,
        Transmit,
    )
    from antecede.core.protocols.factory import (
        MOST_MEMBERS,
        Factory,
        promise,
        relation_of,
        smallest,
    )
    from antecede.core.protocols.registry import (
        ENTRIES,
        SYMBOLS,
        ProtocolEntry,
        entry,
        flat_class,
        of_order,
    )
    from antecede.core.protocols.reply.messages import ID_BYTES, SbMessage, control_bytes
    from antecede.core.protocols.reply.sb import SemanticOrder
    from antecede.core.protocols.reply.state import SEQNO_BYTES, PublishedOrderingList
    from antecede.core.protocols.vector.base import (
        INTEGER_BYTES,
        PAIR_BYTES,
        CountingProtocol,
        encode_with_pairs,
    )
    from antecede.core.protocols.vector.idr import Idr, IdrMessage
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "base": (
                "Addressing DUPLICATE Deliver DeliverIncomplete Discard Effect Guarantee Held "
                "Hold MessageId NOTHING OWN Protocol Relation Transmit"
            ),
            "factory": "Factory MOST_MEMBERS promise relation_of smallest",
            "registry": "ENTRIES ProtocolEntry SYMBOLS entry flat_class of_order",
            "reply.messages": "ID_BYTES SbMessage control_bytes",
            "reply.sb": "SemanticOrder",
            "reply.state": "PublishedOrderingList SEQNO_BYTES",
            "vector.base": "CountingProtocol INTEGER_BYTES PAIR_BYTES encode_with_pairs",
            "vector.idr": "Idr IdrMessage",
        },
    )
