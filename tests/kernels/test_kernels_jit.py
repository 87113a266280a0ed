"""The cache of compiled kernels: found again, fresh after an edit, never a reason to fail."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from numba.core import config

from antecede.kernels import jit

PROGRAM = """
from antecede.kernels import jit
from antecede.kernels.outer import outer
print(outer(5), sum(outer.stats.cache_hits.values()), jit.cache_folder() is not None)
"""


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A copy of the package with two kernels, one calling the other across files."""
    source = Path(jit.__file__).parents[1]
    target = tmp_path / "lib" / "antecede"
    (target / "kernels").mkdir(parents=True)
    (target / "__init__.py").touch()
    for name in ("errors.py", "kernels/__init__.py", "kernels/jit.py"):
        shutil.copy(source / name, target / name)
    (target / "kernels" / "inner.py").write_text(
        "from antecede.kernels.jit import njit\n@njit\ndef inner(x):\n    return x + 1\n"
    )
    (target / "kernels" / "outer.py").write_text(
        "from antecede.kernels.inner import inner\nfrom antecede.kernels.jit import njit\n"
        "@njit\ndef outer(x):\n    return inner(x) * 10\n"
    )
    return target


def run(package: Path, cache: Path) -> list[str]:
    environment = {**os.environ, "PYTHONPATH": str(package.parent), "NUMBA_CACHE_DIR": str(cache)}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=True
    )
    return done.stdout.split()


def test_second_process_loads_machine_code_and_an_edit_of_a_callee_is_seen(
    package: Path, tmp_path: Path
) -> None:
    cache = tmp_path / "cache"
    assert run(package, cache) == ["60", "0", "True"]
    assert run(package, cache) == ["60", "1", "True"]
    inner = package / "kernels" / "inner.py"
    inner.write_text(inner.read_text().replace("x + 1", "x + 2"))
    assert run(package, cache) == ["70", "0", "True"]


def test_no_place_to_write_is_no_failure(package: Path, tmp_path: Path) -> None:
    blocked = tmp_path / "a-file"
    blocked.write_text("not a folder")
    assert run(package, blocked) == ["60", "0", "False"]


def test_configuration_of_numba_is_left_alone() -> None:
    before = vars(config)["CACHE_DIR"]
    compiled = jit.njit(abs_difference)
    assert compiled(3, 5) == 2
    assert before == vars(config)["CACHE_DIR"]


def abs_difference(a: int, b: int) -> int:
    return abs(a - b)


def test_compiling_is_told_apart_from_work() -> None:
    from antecede.kernels.compile_time import timed

    @jit.inlined
    def sum_up_to(n: int) -> int:
        total = 0
        for k in range(n):
            total += k
        return total

    with timed() as cold:
        assert sum_up_to(10) == 45
    with timed() as warm:
        assert sum_up_to(10) == 45
    assert cold.compiling_s > 0.01
    assert cold.working_s < cold.compiling_s + 1
    assert (warm.compiling_s, warm.words()) == (0.0, "")
    assert "s to compile the kernels, once" in cold.words() or cold.compiling_s < 0.05
