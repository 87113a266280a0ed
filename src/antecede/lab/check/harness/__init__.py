"""Test harness of a group of protocol objects."""

from typing import TYPE_CHECKING

from antecede.lazy import lazy_names

if TYPE_CHECKING:
    from antecede.lab.check.harness.driver import ImpossibleError
    from antecede.lab.check.harness.group_under_test import make_flat_group
    from antecede.lab.check.harness.guarded_calls import (
        LIMIT_S,
        call_guarded,
        in_words,
        raise_own,
        watch_calls,
    )
    from antecede.lab.check.harness.network import (
        ARRIVED,
        DELIVERED,
        DISCARDED,
        FORWARDED,
        HELD,
        JOINED,
        LEFT,
        LOST,
        RELEASED,
        SENT,
    )
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "driver": "ImpossibleError",
            "group_under_test": "make_flat_group",
            "guarded_calls": "LIMIT_S call_guarded in_words raise_own watch_calls",
            "network": "ARRIVED DELIVERED DISCARDED FORWARDED HELD JOINED LEFT LOST RELEASED SENT",
        },
    )
