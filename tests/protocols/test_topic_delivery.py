"""The engine of 004's protocols: never early, never stuck, waits that no run makes too long."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.protocols.topic_tools import CLASSES, GROUPS, TopicNetwork

every = pytest.mark.parametrize("name", CLASSES)
groups = pytest.mark.parametrize("group", GROUPS)


@every
@groups
@given(seed=st.integers(0, 2**32))
@settings(max_examples=25)
def test_a_network_that_keeps_the_bounds(name: str, group: str, seed: int) -> None:
    network = TopicNetwork(CLASSES[name], seed, bounds=GROUPS[group]).run(20).finish()
    assert network.early == []
