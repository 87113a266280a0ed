"""Which channel model the arrivals and the deliveries of a script followed (Sahai et al.
2020).
"""

from __future__ import annotations

from antecede.core.oracle import CAUSAL, FIFO, RECEIVE, SEND, Model, arrivals, deliveries
from antecede.lab.check.harness.network import JOINED
from antecede.lab.check.scenario.execution import ScriptRun, rows_of


def channel_line(run: ScriptRun) -> str:
    """Return "Arrivals: FIFO, not causal (a after b at P1). Deliveries: causal."; "" if neither.

    Messages of the application count, from the member that sent one to each member that it is
    for. What a later message overtook while it was on its way counts, too, lost or not.
    """
    rows = rows_of(run)
    if not any(row.kind == RECEIVE for row in rows):
        return ""
    newcomers = {one.at for one in run.occurrences() if one.kind == JOINED}
    present = {row.member for row in rows if row.member is not None} - newcomers
    sent = (row.id for row in rows if row.kind == SEND)
    addressed = {message: run.addressed.get(message, tuple(present)) for message in sent}
    came, delivered = arrivals(rows, addressed), deliveries(rows, addressed)
    return f"Arrivals: {_words(came)}. Deliveries: {_words(delivered)}."


def _words(model: Model) -> str:
    witness = model.witness
    if witness is None:
        return CAUSAL
    name = "FIFO, not causal" if model.name == FIFO else model.name
    pair = f"{witness.message} after {witness.by}"
    if witness.never:
        pair = f"{witness.by} without {witness.message}"
    return f"{name} ({pair} at {witness.member})"
