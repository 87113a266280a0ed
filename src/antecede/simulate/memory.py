"""Memory of a run: told beforehand where that is exact, and the run ended before there is none.

The compiled engines allocate everything at the beginning and know how much. What the readable
engine will take depends on the protocol, so it is not guessed: the run is given what is free, and
ends with an error that says how far it came.
"""

from __future__ import annotations

import resource
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from antecede.errors import InputError
from antecede.simulate.free_memory import free_bytes, own_size
from antecede.simulate.run import AUTO, READABLE, compiled_engine
from antecede.simulate.scenario.model import Scenario
from antecede.simulate.topology import PubSub, kind_of

GIB, MIB = 1 << 30, 1 << 20


def compiled_bytes(scenario: Scenario, engine: str = AUTO, seed: int = 0) -> int | None:
    """Return the bytes that the compiled engine of this run asks for; None: none would run it.

    Raises ScenarioError.
    """
    found = None if engine == READABLE else compiled_engine(scenario)
    return int(found.call("bytes", scenario, seed)) if found and found.name else None


def check_memory(scenario: Scenario, engine: str = AUTO, *, free: int | None = None) -> None:
    """Raise InputError where a compiled engine would need more than is free (`free` bytes)."""
    need = compiled_bytes(scenario, engine)
    have = free_bytes() if free is None else free
    if need is not None and need > have:
        raise InputError(
            f"this run would need {_size(need)} of memory and {_size(have)} are free. Lower "
            f"{_lower(scenario, {})}"
        )


class Reached:
    """A run's progress that is remembered, for the error of `within_memory`."""

    def __init__(self, follow: Callable[[float], None] = lambda part: None) -> None:
        self.follow, self.part = follow, 0.0

    def __call__(self, part: float) -> None:
        """Note the part of the sending time that is over, 0 to 1."""
        self.part = part
        self.follow(part)


@contextmanager
def within_memory(
    scenario: Scenario,
    *,
    free: int | None = None,
    loosen: Mapping[str, str] | None = None,
    reached: Reached | None = None,
    name: str = "this run",
) -> Iterator[None]:
    """End what runs inside by InputError once it takes more than the bytes that are `free`.

    The system enforces it, by the limit of this process's address space (RLIMIT_AS). Where it does
    not say how large that is (macOS), nothing is limited. `loosen` has other names for the keys to
    lower ("topology", "workload", "run"), for commands with options in their place; `reached`
    follows the run, to say how far it was.
    """
    have = free_bytes() if free is None else free
    before = resource.getrlimit(resource.RLIMIT_AS)
    own = own_size()
    most = own + have
    if own and most < min(_bounded(before[0]), _bounded(before[1])):
        resource.setrlimit(resource.RLIMIT_AS, (most, before[1]))
    full = False
    try:
        yield
    except MemoryError:
        full = True  # raised below: until here the frames of the run hold what it took
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)
    if full:
        when = f" after {reached.part:.0%} of its sending time" if reached and reached.part else ""
        raise InputError(
            f"{name} took all of the {_size(have)} of memory that were free{when}. Lower "
            f"{_lower(scenario, loosen or {})}"
        )


def _bounded(limit: int) -> float:
    return float("inf") if limit == resource.RLIM_INFINITY else limit


def _lower(scenario: Scenario, names: Mapping[str, str]) -> str:
    of_kind = {"mesh": "peers", "hierarchy": "groups", "pubsub": "subgroups"}
    members = names.get("topology", f"topology.{of_kind[kind_of(scenario.topology)]}")
    keys = [names.get("workload", f"workload.{_rate_key(scenario)}")]
    if scenario.workload.kind not in ("random", "replay"):
        keys.insert(0, names.get("run", "run.duration_s"))
    if isinstance(scenario.topology, PubSub) and "topology" not in names:
        keys.append("topology.topics")
    return f"{', '.join(keys)} or {members}"


def _rate_key(scenario: Scenario) -> str:
    workload = scenario.workload
    if workload.kind in ("random", "replay"):
        return "messages" if workload.kind == "random" else "path"
    if workload.total_hz is not None:
        return "total_hz"
    return "rate_hz" if workload.kind == "poisson" else "interval (a longer one)"


def _size(count: int) -> str:
    return f"{count / GIB:,.1f} GiB" if count >= GIB // 10 else f"{count / MIB:,.0f} MiB"
