"""A run that needs too much memory is refused where that is known, and ended where it is not."""

from __future__ import annotations

import re
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from antecede.errors import InputError
from antecede.lab.simulate.compiled.hierarchy.engine import bytes_hierarchy
from antecede.lab.simulate.compiled.mesh.engine import bytes_mesh
from antecede.lab.simulate.config.model import SimulationConfig, Workload
from antecede.lab.simulate.memory_guard import (
    check_memory,
    estimate_compiled_bytes,
    free_bytes,
    within_memory,
)
from antecede.lab.simulate.run import READABLE
from antecede.lab.simulate.schedule import build_schedule, estimate_messages
from antecede.lab.simulate.topology import Hierarchy, Mesh

MIB = 1 << 20


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
    config = SimulationConfig(Mesh(20), workload=workload, duration_s=10.0)
    sent = len(build_schedule(config, 0).time_us)
    assert estimate_messages(config) == pytest.approx(sent, rel=0.05)


IMPORTS = """
from antecede.lab.simulate.memory_guard import Reached, within_memory
from antecede.lab.simulate.reference_engine import run_readable
from antecede.lab.simulate.config.model import SimulationConfig, Workload
from antecede.lab.simulate.topology import Mesh, PubSub
"""


def run(config: str, *names: str) -> subprocess.CompletedProcess[str]:
    """Run a scenario in a process of its own, that has 64 MiB for it."""
    loosen = dict(zip(names[::2], names[1::2], strict=True))
    program = f"""{IMPORTS}
reached = Reached()
with within_memory({config}, free=64 << 20, loosen={loosen}, reached=reached):
    run_readable({config}, 0, progress=reached)
"""
    return subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("config", "says"),
    [
        ("SimulationConfig(Mesh(60), duration_s=100.0)",
         r"after \d+% of its sending time; lower run\.duration_s, workload\.interval .* or "
         r"topology\.peers$"),
        ("SimulationConfig(Mesh(2), workload=Workload('poisson', rate_hz=1e6), duration_s=1000.0)",
         r"of free memory; lower run\.duration_s, workload\.rate_hz or topology\.peers$"),
        ("SimulationConfig(Mesh(2), workload=Workload('random', messages=10**9))",
         r"lower workload\.messages or topology\.peers$"),
        ("SimulationConfig(Mesh(900), 'matrix', workload=Workload('random', messages=50))",
         r"lower workload\.messages or topology\.peers$"),
        ("SimulationConfig(PubSub((2, 2), 10**7), 'tv')",
         r"workload\.interval .*, topology\.topics or topology\.subgroups$"),
    ],
)  # fmt: skip
def test_a_run_ends_before_it_takes_more_than_is_free(config: str, says: str) -> None:
    ended = run(config)
    assert re.search(rf"InputError: this run used all 64 MiB .*{says}", ended.stderr, re.M)


@pytest.mark.slow
def test_options_can_stand_in_place_of_keys() -> None:
    ended = run(
        "SimulationConfig(Mesh(60), duration_s=100.0)", "topology", "--members", "run", "--seconds"
    )
    assert "lower --seconds, workload.interval (a longer one) or --members" in ended.stderr


def test_the_limit_is_that_of_the_run_alone() -> None:
    before = resource.getrlimit(resource.RLIMIT_AS)
    with within_memory(SimulationConfig(Mesh(3)), free=1 << 40):
        inside = resource.getrlimit(resource.RLIMIT_AS)
    assert inside[0] != resource.RLIM_INFINITY
    assert resource.getrlimit(resource.RLIMIT_AS) == before


def machine(root: Path, **files: Any) -> Path:
    (root / "proc/self").mkdir(parents=True)
    (root / "proc/meminfo").write_text("MemTotal: 9 kB\nMemAvailable:  2048 kB\n")
    for name, text in files.items():
        path = root / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(str(text))
    return root


@pytest.mark.parametrize(
    ("config", "exact"),
    [
        (SimulationConfig(Mesh(50), "idr"), bytes_mesh),
        (SimulationConfig(Hierarchy((20,), 20), "hierarchical"), bytes_hierarchy),
    ],
)
def test_a_compiled_run_needs_what_its_engine_asks_for(
    config: SimulationConfig, exact: Callable[[SimulationConfig, int], int]
) -> None:
    need = exact(config, 0)
    assert estimate_compiled_bytes(config, seed=3) == exact(config, 3)
    check_memory(config, free=need)
    with pytest.raises(InputError, match=r"needs .*, but .* are free; lower run\.duration_s"):
        check_memory(config, free=need - 1)
    assert estimate_compiled_bytes(config, READABLE) is None
    check_memory(config, READABLE, free=0)  # nothing is known beforehand


def test_the_machine_says_what_is_free(tmp_path: Path) -> None:
    assert free_bytes(machine(tmp_path)) == 2 * MIB


def test_control_groups_leave_less_and_files_can_go(tmp_path: Path) -> None:
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
