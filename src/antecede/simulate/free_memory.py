"""How much memory this process may still take: of the machine, its container and its own limit."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

KIB = 1024
UNLIMITED = 1 << 62
"""Version 1 of control groups writes a number near this for no limit."""


def free_bytes(root: Path = Path("/")) -> int:
    """Return the least of what machine, control groups and the process's limit leave, in bytes.

    Where the system says nothing of what is free, half of what there is. `root` has proc and sys.
    """
    found = [_of_machine(root), *_of_groups(root)]
    soft, _ = resource.getrlimit(resource.RLIMIT_AS)
    if soft != resource.RLIM_INFINITY:
        found.append(soft - own_size(root))
    return max(0, min(found))


def _of_machine(root: Path) -> int:
    for line in _text(root / "proc/meminfo").splitlines():
        name, _, rest = line.partition(":")
        if name == "MemAvailable":
            return int(rest.split()[0]) * KIB
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2


def own_size(root: Path = Path("/")) -> int:
    """Return the bytes of this process's address space; 0 where the system does not say."""
    words = _text(root / "proc/self/statm").split()
    return int(words[0]) * os.sysconf("SC_PAGE_SIZE") if words else 0


def _of_groups(root: Path) -> Iterator[int]:
    """Yield what each control group around this process leaves; files that can go count as free."""
    for line in _text(root / "proc/self/cgroup").splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers == "":
            place = root / "sys/fs/cgroup"
            names = ("memory.max", "memory.current", "inactive_file")
        elif "memory" in controllers.split(","):
            place = root / "sys/fs/cgroup/memory"
            names = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
        else:
            continue
        within = PurePosixPath(path.lstrip("/"))
        for folder in (within, *within.parents):
            if ".." not in folder.parts:
                yield from _left(place / folder, *names)


def _left(folder: Path, limit: str, used: str, spare: str) -> Iterator[int]:
    most, taken = _text(folder / limit).strip(), _text(folder / used).strip()
    if not (most.isdecimal() and taken.isdecimal()) or int(most) >= UNLIMITED:
        return  # "max", or no such group
    stat = dict(line.split()[:2] for line in _text(folder / "memory.stat").splitlines())
    yield int(most) - int(taken) + int(stat.get(spare, 0))


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii", errors="replace")
    except OSError:
        return ""
