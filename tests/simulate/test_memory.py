"""What a run needs is told before it starts: held against what runs took, and refused."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from antecede.errors import InputError
from antecede.simulate.compiled.hierarchy.engine import hierarchy_bytes
from antecede.simulate.compiled.mesh.engine import mesh_bytes
from antecede.simulate.delays import Delay
from antecede.simulate.free_memory import free_bytes
from antecede.simulate.memory import check_memory, messages_of, needed_bytes, readable_need
from antecede.simulate.reference_engine import run_readable
from antecede.simulate.run import READABLE
from antecede.simulate.scenario.model import Links, Scenario, Workload
from antecede.simulate.schedule import schedule
from antecede.simulate.topology import Hierarchy, Mesh, PubSub

MIB = 1 << 20


@pytest.mark.parametrize(
    "scenario",
    [
        Scenario(Mesh(20), "fifo", duration_s=1.5),
        Scenario(Mesh(5), "bss", workload=Workload("poisson", rate_hz=100.0), duration_s=4.0),
        Scenario(Mesh(12), "linear", duration_s=1.5),
        Scenario(Mesh(25), "matrix", duration_s=0.5),
        Scenario(Mesh(20), "ses", duration_s=0.5),
        Scenario(PubSub((6, 6), 5), "htbc", duration_s=1.0),
        Scenario(Hierarchy((8,), 8), "hierarchical", duration_s=1.5),
        Scenario(Mesh(12), "bss", links=Links(duplicate=0.1), duration_s=1.5),
    ],
    ids=lambda scenario: scenario.protocol,
)
def test_the_estimate_holds_what_a_run_takes(scenario: Scenario) -> None:
    """And is not several times of it, beyond the constant part."""
    run_readable(Scenario(scenario.topology, scenario.protocol, duration_s=0.1), 0)  # imports
    tracemalloc.start()
    try:
        run_readable(scenario, 0)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    need = readable_need(scenario)
    assert peak <= need.total
    assert sum(need) <= 8 * peak


@pytest.mark.parametrize(
    "workload",
    [
        Workload(),
        Workload(silent=5),
        Workload(total_hz=333.0),
        Workload("poisson", rate_hz=20.0),
        Workload("poisson", total_hz=333.0, silent=3),
        Workload("random", messages=777),
    ],
)
def test_messages_are_counted_before_they_are_drawn(workload: Workload) -> None:
    scenario = Scenario(Mesh(20), workload=workload, duration_s=10.0)
    sent = len(schedule(scenario, 0).time_us)
    assert messages_of(scenario) == pytest.approx(sent, rel=0.05)


@pytest.mark.parametrize(
    ("scenario", "says"),
    [
        (Scenario(Mesh(1000), duration_s=100.0),
         r"what happens. Lower run\.duration_s, workload\.interval .*or topology\.peers$"),
        (Scenario(Mesh(2), workload=Workload("poisson", rate_hz=1e6), duration_s=1000.0),
         r"Lower run\.duration_s, workload\.rate_hz or topology\.peers$"),
        (Scenario(Mesh(2), workload=Workload("random", messages=10**9)),
         r"Lower workload\.messages$"),
        (Scenario(Mesh(4000), "matrix", workload=Workload("random", messages=1)),
         r"what members keep of each other. Lower topology\.peers$"),
        (Scenario(Mesh(100), "ses", links=Links(Delay(10, 20)), workload=Workload(total_hz=9e3)),
         r"what is under way. Lower workload\.total_hz or topology\.peers$"),
        (Scenario(Hierarchy((9000,), 9000), "hierarchical"), r"or topology\.groups$"),
        (Scenario(PubSub((9000,), 5), "tv"), r"or topology\.subgroups$"),
        (Scenario(PubSub((2, 2), 10**9), "tv"), r"Lower topology\.topics or topology\.subgroups$"),
        (Scenario(Mesh(2), workload=Workload(interval=Delay(1e-6, 1.0)), duration_s=1e6),
         r"the schedule|what happens"),
    ],
)  # fmt: skip
def test_a_run_too_large_is_refused_and_says_what_to_lower(scenario: Scenario, says: str) -> None:
    with pytest.raises(InputError, match=r"would need about .*iB of memory and 1\.0 GiB") as caught:
        check_memory(scenario, "readable", free=1 << 30)
    assert caught.match(says)


def test_options_can_stand_in_place_of_keys() -> None:
    names = {"topology": "--members", "workload": "--rate", "run": "--seconds"}
    with pytest.raises(InputError, match="Lower --seconds, --rate or --members"):
        check_memory(Scenario(Mesh(1000), duration_s=100.0), "readable", free=1, loosen=names)


def test_what_fits_is_not_refused() -> None:
    scenario = Scenario(Mesh(5))
    check_memory(scenario, "readable", free=needed_bytes(scenario, "readable"))
    with pytest.raises(InputError):
        check_memory(scenario, "readable", free=needed_bytes(scenario, "readable") - 1)


def machine(root: Path, **files: Any) -> Path:
    (root / "proc/self").mkdir(parents=True)
    (root / "proc/meminfo").write_text("MemTotal: 9 kB\nMemAvailable:  2048 kB\n")
    for name, text in files.items():
        path = root / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(str(text))
    return root


@pytest.mark.parametrize(
    ("scenario", "exact"),
    [
        (Scenario(Mesh(50), "idr"), mesh_bytes),
        (Scenario(Hierarchy((20,), 20), "hierarchical"), hierarchy_bytes),
    ],
)
def test_a_compiled_run_needs_what_its_engine_asks_for(
    scenario: Scenario, exact: Callable[[Scenario, int], int]
) -> None:
    assert needed_bytes(scenario, seed=3) == exact(scenario, 3)
    assert needed_bytes(scenario, READABLE) == readable_need(scenario).total != exact(scenario, 3)


def test_the_machine_says_what_is_free(tmp_path: Path) -> None:
    assert free_bytes(machine(tmp_path)) == 2 * MIB


def test_control_groups_leave_less_and_files_can_go(tmp_path: Path) -> None:
    """Version 2: the group of the process and those around it."""
    group = "sys__fs__cgroup__a"
    root = machine(tmp_path, proc__self__cgroup="0::/a/b\n")
    for name, text in {
        f"{group}__memory.max": MIB,
        f"{group}__memory.current": MIB // 2,
        f"{group}__memory.stat": f"anon 5\ninactive_file {MIB // 4}\n",
        f"{group}__b__memory.max": "max",
        f"{group}__b__memory.current": 5,
    }.items():
        path = root / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(str(text))
    assert free_bytes(root) == MIB // 2 + MIB // 4


def test_control_groups_of_version_1(tmp_path: Path) -> None:
    group = "sys__fs__cgroup__memory__a"
    files = {
        "proc__self__cgroup": "3:cpu:/x\n4:memory:/a\n",
        f"{group}__memory.limit_in_bytes": MIB,
        f"{group}__memory.usage_in_bytes": MIB,
        "sys__fs__cgroup__memory__memory.limit_in_bytes": 9223372036854771712,
        "sys__fs__cgroup__memory__memory.usage_in_bytes": 7,
    }
    assert free_bytes(machine(tmp_path, **files)) == 0


def test_this_machine_has_some_memory_free() -> None:
    assert free_bytes() > MIB
