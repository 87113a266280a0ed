"""Simulator of group protocols: configuration, reference engine, compiled engines."""

from typing import TYPE_CHECKING

from antecede.lazy import lazy_names

if TYPE_CHECKING:
    from antecede.lab.simulate.delays import (
        LONGEST_S,
        US,
        Delay,
        delay_in_full,
        parse_delay,
        pick_array,
    )
    from antecede.lab.simulate.members import make_members
    from antecede.lab.simulate.memory_guard import Reached, check_memory, within_memory
    from antecede.lab.simulate.network import Network
    from antecede.lab.simulate.random_streams import Ints, Stream, draw_array, make_key
    from antecede.lab.simulate.reference_engine import run_readable
    from antecede.lab.simulate.replay import replay_trace
    from antecede.lab.simulate.run import (
        AUTO,
        COMPILED,
        ENGINES,
        READABLE,
        select_compiled_engine,
        simulate,
    )
    from antecede.lab.simulate.schedule import build_schedule, estimate_messages
    from antecede.lab.simulate.topology import (
        EXTERNAL,
        INTERNAL,
        PEER,
        Hierarchy,
        Mesh,
        PubSub,
        Topology,
        kind_of,
    )
    from antecede.lab.simulate.workload import Traffic
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "delays": "Delay LONGEST_S US delay_in_full parse_delay pick_array",
            "members": "make_members",
            "memory_guard": "Reached check_memory within_memory",
            "network": "Network",
            "random_streams": "Ints Stream draw_array make_key",
            "reference_engine": "run_readable",
            "replay": "replay_trace",
            "run": "AUTO COMPILED ENGINES READABLE select_compiled_engine simulate",
            "schedule": "build_schedule estimate_messages",
            "topology": "EXTERNAL Hierarchy INTERNAL Mesh PEER PubSub Topology kind_of",
            "workload": "Traffic",
        },
    )
