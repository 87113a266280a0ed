"""Equivocation: two batches under one number with their sender's signature.

Detected when both reach one member: after a partition, or by a relay. The two signatures are a
proof for every member that knows the sender's key.
"""

from __future__ import annotations

from typing import NamedTuple

from antecede.errors import ConflictError, DecodeError
from antecede.live.heads import is_run
from antecede.live.lanes import SenderLogs, SignedBatch
from antecede.live.sealing import Signatures


class EquivocationProof(NamedTuple):
    """Two batches that a sender signed under one number."""

    lane: str
    number: int
    one: SignedBatch
    other: SignedBatch


def find_proof(
    seals: Signatures, lanes: SenderLogs, lane: str, number: int, batch: SignedBatch
) -> EquivocationProof | None:
    """Compare a batch with the known one of its number, while that is in memory. Returns the proof
    if the sender signed both. Raises ConflictError if they differ and a signature is missing or
    wrong: then the faulty member is unknown.
    """
    known = lanes.by_name.get(lane)
    if known is None or not known.first <= number <= known.newest:
        return None
    here = known.get(number)
    if here.wire == batch.wire or is_run(here.wire):  # a skip marker contains less than the batch
        return None
    try:
        for one in (here, batch):
            seals.check(lane, number, one.wire, one.seal)
        if not (here.seal and batch.seal):
            raise DecodeError("this group has no signatures")
    except DecodeError as error:
        raise ConflictError(
            f"batch {number} of {lane} has other content here, without proof: {error}"
        ) from error
    return EquivocationProof(lane, number, here, batch)
