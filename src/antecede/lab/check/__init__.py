"""Checker of protocols: model checker, conformance suite, scenarios."""

from typing import TYPE_CHECKING

from antecede.lazy import lazy_names

if TYPE_CHECKING:
    from antecede.lab.check.causal_past import (
        ARRIVED,
        DELIVERED,
        LEARNS,
        RELEASED,
        SENT,
        CausalPasts,
    )
    from antecede.lab.check.check import find_target, run_check
    from antecede.lab.check.check_all import CaseResult, cases, judge_all
    from antecede.lab.check.global_states import (
        CHANNELS,
        FIFO,
        MOST_STATES,
        ChannelCopy,
        SnapshotRun,
        StateFailure,
        explore,
        play,
    )
    from antecede.lab.check.results import (
        EARLY,
        NEEDLESS_HOLD,
        STUCK,
        Failure,
        Verdict,
        make_relative_name,
    )
    from antecede.lab.check.target import Target, is_file_target, load_class, not_made
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "causal_past": "ARRIVED DELIVERED LEARNS RELEASED SENT CausalPasts",
            "check": "find_target run_check",
            "check_all": "CaseResult cases judge_all",
            "global_states": (
                "CHANNELS FIFO MOST_STATES ChannelCopy SnapshotRun StateFailure explore play"
            ),
            "results": "EARLY NEEDLESS_HOLD STUCK Failure Verdict make_relative_name",
            "target": "Target is_file_target load_class not_made",
        },
    )
