"""The five protocols of Nakayama 2017, by the times that they carry besides the topic vector.

Source: Nakayama 2017, section 2 ("types of protocols based on the ordering rules"), and section 3
for TV_VT, the exact relation with which the others are compared.
"""

from __future__ import annotations

from typing import ClassVar

from antecede.core.protocols.topics.delivery import TopicProtocol
from antecede.core.protocols.topics.messages import CarriedTimes


class Tv(TopicProtocol):
    """TV: topic vector alone; waits by arrival."""


class TvLt(TopicProtocol):
    """TV_LT: topic vector and linear time; waits by arrival."""

    carried_times: ClassVar[CarriedTimes] = CarriedTimes(linear=True)


class TvPt(TopicProtocol):
    """TV_PT: topic vector and physical time; waits by the time of publishing."""

    carried_times: ClassVar[CarriedTimes] = CarriedTimes(physical=True)


class Htbc(TopicProtocol):
    """HTBC: topic vector, linear and physical time; the fewest pairs at constant message size."""

    carried_times: ClassVar[CarriedTimes] = CarriedTimes(linear=True, physical=True)


class TvVt(TopicProtocol):
    """TV_VT: topic vector and vector time; orders exactly the causal pairs that share topics."""

    carried_times: ClassVar[CarriedTimes] = CarriedTimes(vector=True)
