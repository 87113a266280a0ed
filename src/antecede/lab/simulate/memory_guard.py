"""Memory guard: rejects runs that need more memory than is free, or ends them with an error.

Compiled engines allocate all memory first, so their need is known. A run of the reference engine is
limited to the free memory of machine, container and process. The error contains its progress.
"""

from __future__ import annotations

import os
import resource
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from antecede.errors import InputError
from antecede.lab.simulate.config.model import SimulationConfig
from antecede.lab.simulate.run import AUTO, READABLE, select_compiled_engine
from antecede.lab.simulate.topology import PubSub, kind_of

KIB = 1024
UNLIMITED = 1 << 62  # Version 1 of control groups writes a number near this for no limit


def free_bytes(root: Path = Path("/")) -> int:
    """Return the free memory: the least of machine, control groups and process limit.

    Half of the machine's memory if the system does not report it. `root` has proc and sys.
    """
    found = [_read_machine_free(root), *_read_group_free(root)]
    soft, _ = resource.getrlimit(resource.RLIMIT_AS)
    if soft != resource.RLIM_INFINITY:
        found.append(soft - read_process_size(root))
    return max(0, min(found))


def _read_machine_free(root: Path) -> int:
    for line in _read_text(root / "proc/meminfo").splitlines():
        name, _, rest = line.partition(":")
        if name == "MemAvailable":
            return int(rest.split()[0]) * KIB
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2


def read_process_size(root: Path = Path("/")) -> int:
    """Return the bytes of this process's address space (0: unknown)."""
    words = _read_text(root / "proc/self/statm").split()
    return int(words[0]) * os.sysconf("SC_PAGE_SIZE") if words else 0


def _read_group_free(root: Path) -> Iterator[int]:
    for line in _read_text(root / "proc/self/cgroup").splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers == "":
            base = root / "sys/fs/cgroup"
            names = ("memory.max", "memory.current", "inactive_file")
        elif "memory" in controllers.split(","):
            base = root / "sys/fs/cgroup/memory"
            names = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
        else:
            continue
        within = PurePosixPath(path.lstrip("/"))
        for folder in (within, *within.parents):
            if ".." not in folder.parts:
                yield from _compute_group_free(base / folder, *names)


def _compute_group_free(folder: Path, limit: str, used: str, reclaimable: str) -> Iterator[int]:
    most, taken = _read_text(folder / limit).strip(), _read_text(folder / used).strip()
    if not (most.isdecimal() and taken.isdecimal()) or int(most) >= UNLIMITED:
        return  # no limit, or no such group
    stat = dict(line.split()[:2] for line in _read_text(folder / "memory.stat").splitlines())
    yield int(most) - int(taken) + int(stat.get(reclaimable, 0))


def _read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii", errors="replace")
    except OSError:
        return ""


GIB, MIB = 1 << 30, 1 << 20


def estimate_compiled_bytes(
    config: SimulationConfig, engine: str = AUTO, seed: int = 0
) -> int | None:
    """Return the bytes that a compiled engine needs for a run (None: no engine runs it)."""
    found = None if engine == READABLE else select_compiled_engine(config)
    return int(found.call("bytes", config, seed)) if found and found.name else None


def check_memory(config: SimulationConfig, engine: str = AUTO, *, free: int | None = None) -> None:
    """Raise InputError if a compiled engine would need more than `free` bytes."""
    need = estimate_compiled_bytes(config, engine)
    have = free_bytes() if free is None else free
    if need is not None and need > have:
        raise InputError(
            f"this run needs {_format_size(need)} of memory, but {_format_size(have)} are free; "
            f"lower {_describe_remedy(config, {})}"
        )


class Reached:
    """Stored progress of a run, for the error of `within_memory`."""

    def __init__(self, follow: Callable[[float], None] = lambda part: None) -> None:
        self.report, self.fraction = follow, 0.0

    def __call__(self, part: float) -> None:
        """Store the fraction of the sending time that has passed, 0 to 1."""
        self.fraction = part
        self.report(part)


@contextmanager
def within_memory(
    config: SimulationConfig,
    *,
    free: int | None = None,
    loosen: Mapping[str, str] | None = None,
    reached: Reached | None = None,
    name: str = "this run",
) -> Iterator[None]:
    """Raise InputError if the block takes more bytes than are `free`.

    The limit is RLIMIT_AS of this process; there is none if its size is unknown (macOS).
    `loosen` replaces "topology", "workload" and "run" in the remedy by options of a command.
    `progress`: progress of the run.
    """
    have = free_bytes() if free is None else free
    before = resource.getrlimit(resource.RLIMIT_AS)
    own = read_process_size()
    most = own + have
    if own and most < min(_limit_to_float(before[0]), _limit_to_float(before[1])):
        resource.setrlimit(resource.RLIMIT_AS, (most, before[1]))
    full = False
    try:
        yield
    except MemoryError:
        full = True  # raised below, when the frames of the run are released
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)
    if full:
        when = (
            f" after {reached.fraction:.0%} of its sending time"
            if reached and reached.fraction
            else ""
        )
        raise InputError(
            f"{name} used all {_format_size(have)} of free memory{when}; lower "
            f"{_describe_remedy(config, loosen or {})}"
        )


def _limit_to_float(limit: int) -> float:
    return float("inf") if limit == resource.RLIM_INFINITY else limit


def _describe_remedy(config: SimulationConfig, names: Mapping[str, str]) -> str:
    of_kind = {"mesh": "peers", "hierarchy": "groups", "pubsub": "subgroups"}
    members = names.get("topology", f"topology.{of_kind[kind_of(config.topology)]}")
    keys = [names.get("workload", f"workload.{_find_rate_key(config)}")]
    if config.workload.kind not in ("random", "replay"):
        keys.insert(0, names.get("run", "run.duration_s"))
    if isinstance(config.topology, PubSub) and "topology" not in names:
        keys.append("topology.topics")
    return f"{', '.join(keys)} or {members}"


def _find_rate_key(config: SimulationConfig) -> str:
    workload = config.workload
    if workload.kind in ("random", "replay"):
        return "messages" if workload.kind == "random" else "path"
    if workload.total_hz is not None:
        return "total_hz"
    return "rate_hz" if workload.kind == "poisson" else "interval (a longer one)"


def _format_size(count: int) -> str:
    return f"{count / GIB:,.1f} GiB" if count >= GIB // 10 else f"{count / MIB:,.0f} MiB"
