"""Two batches under one number with their owner's seal: a member said otherwise to others.

Found where both come to one member: after a break, or when a lane is handed on. Both seals
together are a proof, which anybody can check who knows the lane's key.
"""

from __future__ import annotations

from typing import NamedTuple

from antecede.errors import ConflictError, DecodeError
from antecede.live.heads import is_run
from antecede.live.lanes import SenderLogs, SignedBatch
from antecede.live.sealing import Signatures


class EquivocationProof(NamedTuple):
    """What a lane's owner sealed twice."""

    lane: str
    number: int
    one: SignedBatch
    other: SignedBatch


def compared(seals: Signatures, lanes: SenderLogs, lane: str, number: int, batch: SignedBatch) -> EquivocationProof | None:
    """Compare a batch that is known by its number with the one that is here, while it is here.

    Returns the proof where both are their owner's. Raises ConflictError where they differ and one
    has no seal, or a wrong one: somebody lies, and it cannot be told who.
    """
    known = lanes.by_name.get(lane)
    if known is None or not known.first <= number <= known.newest:
        return None
    here = known.get(number)
    if here.wire == batch.wire or is_run(here.wire):  # a run says less than the batch
        return None
    try:
        for one in (here, batch):
            seals.check(lane, number, one.wire, one.seal)
        if not (here.seal and batch.seal):
            raise DecodeError("there are no seals in this group")
    except DecodeError as error:
        raise ConflictError(
            f"batch {number} of {lane} is here with other content, and unproven: {error}"
        ) from error
    return EquivocationProof(lane, number, here, batch)
