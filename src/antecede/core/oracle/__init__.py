"""Oracle: exact happened-before from plain sets, slow and obvious.

It shares no code with the protocols that it checks. `history` has causal pasts and violations,
`cuts` global states and `channels` channel models (Sahai et al. 2020).
"""

from typing import TYPE_CHECKING

from antecede.lazy import lazy_names

if TYPE_CHECKING:
    from antecede.core.oracle.channels import CAUSAL, FIFO, Model, arrivals, deliveries
    from antecede.core.oracle.cuts import LOST, Channel, Cuts, Witness
    from antecede.core.oracle.events import DELIVER, EVENT, RECEIVE, SEND, OracleEvent
    from antecede.core.oracle.history import History
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "channels": "CAUSAL FIFO Model arrivals deliveries",
            "cuts": "Channel Cuts LOST Witness",
            "events": "DELIVER EVENT OracleEvent RECEIVE SEND",
            "history": "History",
        },
    )
