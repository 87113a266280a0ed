"""The oracle: exact happened-before from plain sets, slow and obvious.

Nothing here is clever, and nothing is shared with the protocols that it judges: it reads the
events of a finished execution and answers from set membership alone. `history` has the causal
past of messages and what a run did wrong, `cuts` has global states (Sahai et al. 2020, "Global
State of a Distributed System"), `graph` has graphs of declared parents.
"""

from typing import TYPE_CHECKING

from antecede.lazy import lazy_names

if TYPE_CHECKING:
    from antecede.core.oracle.channels import CAUSAL, FIFO, Model, arrivals, deliveries
    from antecede.core.oracle.cuts import LOST, Channel, Cuts, Witness
    from antecede.core.oracle.events import DELIVER, EVENT, RECEIVE, SEND, Event
    from antecede.core.oracle.history import History
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "channels": "CAUSAL FIFO Model arrivals deliveries",
            "cuts": "Channel Cuts LOST Witness",
            "events": "DELIVER EVENT Event RECEIVE SEND",
            "history": "History",
        },
    )
