"""Serialization of snapshots and invitations, independent of class and module names."""

from typing import TYPE_CHECKING

from antecede.lazy import lazy_names

if TYPE_CHECKING:
    from antecede.core.protocols.serialization.codec import pack_state, unpack_state
    from antecede.core.protocols.serialization.schema import (
        ANY,
        BOOL,
        BYTES,
        NUMBER,
        PAIRS,
        SIGNED,
        TEXT,
        TIME,
        WINDOW,
        Many,
        OneOf,
        Shape,
        misfit,
    )
    from antecede.core.protocols.serialization.states import check_frontier, check_state
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "codec": "pack_state unpack_state",
            "schema": "ANY BOOL BYTES Many NUMBER OneOf PAIRS SIGNED Shape TEXT TIME WINDOW misfit",
            "states": "check_frontier check_state",
        },
    )
