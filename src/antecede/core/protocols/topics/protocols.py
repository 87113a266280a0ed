"""The five protocols of Nakayama 2017: what each carries beside the topic vector, and so what it
orders.

Source: Nakayama 2017, section 2 ("types of protocols based on the ordering rules") and, for TV_VT,
section 3, where it is the exact relation that the others are measured against. What they do is in
`topics.delivery`, how they order in `topics.relations`.
"""

from __future__ import annotations

from typing import ClassVar

from antecede.core.protocols.topics.delivery import TopicProtocol
from antecede.core.protocols.topics.messages import Parts


class Tv(TopicProtocol):
    """TV: topic vector alone; waits by arrival."""


class TvLt(TopicProtocol):
    """TV_LT: and linear time; waits by arrival."""

    parts: ClassVar[Parts] = Parts(linear=True)


class TvPt(TopicProtocol):
    """TV_PT: and physical time; waits by the time of publishing."""

    parts: ClassVar[Parts] = Parts(physical=True)


class Htbc(TopicProtocol):
    """HTBC: and both; orders the least of those whose messages do not grow with the group."""

    parts: ClassVar[Parts] = Parts(linear=True, physical=True)


class TvVt(TopicProtocol):
    """TV_VT: and vector time; orders exactly what is causally before and related in topics."""

    parts: ClassVar[Parts] = Parts(vector=True)
