"""antecede: messages in the order their causes demand.

`Group` gives causal delivery over any transport. `antecede.oracle` says what came before what,
`antecede.check` judges protocols, `antecede.audit` and `antecede.order` work on recorded
traces, and `antecede.spark` does so on Spark, in batch and in streams.
"""

from antecede.errors import AntecedeError
from antecede.group import Group
from antecede.message import Blocked, Envelope, Message, Packet

__version__ = "0.1.0"
__all__ = ["AntecedeError", "Blocked", "Envelope", "Group", "Message", "Packet", "__version__"]
