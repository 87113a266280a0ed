"""Cache of compiled kernels: reused, fresh after an edit, optional."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from numba.core import config

import antecede
from antecede.tables.kernels import jit

PROGRAM = """
import antecede
from antecede.tables.kernels import jit
from antecede.tables.kernels.outer import outer
print(outer(5), sum(outer.stats.cache_hits.values()), jit.cache_folder() is not None)
"""


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A copy of the package with two kernels, one calling the other across files."""
    source = Path(jit.__file__).parents[2]
    target = tmp_path / "lib" / "antecede"
    (target / "tables/kernels").mkdir(parents=True)
    (target / "__init__.py").touch()
    (target / "tables/__init__.py").touch()
    for name in ("errors.py", "lazy.py", "tables/kernels/__init__.py", "tables/kernels/jit.py"):
        shutil.copy(source / name, target / name)
    (target / "tables" / "kernels" / "inner.py").write_text(
        "from antecede.tables.kernels.jit import njit\n@njit\ndef inner(x):\n    return x + 1\n"
    )
    (target / "tables" / "kernels" / "outer.py").write_text(
        "from antecede.tables.kernels.inner import inner\n"
        "from antecede.tables.kernels.jit import njit\n"
        "@njit\ndef outer(x):\n    return inner(x) * 10\n"
    )
    return target


def run(package: Path, cache: Path | str) -> list[str]:
    environment = {**os.environ, "PYTHONPATH": str(package.parent), "NUMBA_CACHE_DIR": str(cache)}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=True
    )
    return done.stdout.split()


@pytest.mark.slow
def test_second_process_loads_machine_code_and_an_edit_of_a_callee_is_seen(
    package: Path, tmp_path: Path
) -> None:
    cache = tmp_path / "cache"
    assert run(package, cache) == ["60", "0", "True"]
    assert run(package, cache) == ["60", "1", "True"]
    inner = package / "tables" / "kernels" / "inner.py"
    inner.write_text(inner.read_text().replace("x + 1", "x + 2"))
    assert run(package, cache) == ["70", "0", "True"]


@pytest.mark.slow
def test_a_zip_file_shares_the_cache_of_an_installation_and_of_its_copies(
    package: Path, tmp_path: Path
) -> None:
    cache, zips = tmp_path / "cache", [tmp_path / name / "a.zip" for name in ("one", "two")]
    made = Path(shutil.make_archive(str(tmp_path / "a"), "zip", package.parent))
    for path in zips:
        path.parent.mkdir()
        shutil.copy(made, path)
    assert run(zips[0] / "antecede", cache) == ["60", "0", "True"]
    assert run(zips[0] / "antecede", cache) == ["60", "1", "True"]
    assert run(zips[1] / "antecede", cache) == ["60", "1", "True"]
    assert run(package, cache) == ["60", "1", "True"]
    inner = package / "tables" / "kernels" / "inner.py"
    inner.write_text(inner.read_text().replace("x + 1", "x + 2"))
    shutil.make_archive(str(tmp_path / "one" / "a"), "zip", package.parent)
    assert run(zips[0] / "antecede", cache) == ["70", "0", "True"]


FIRST = """
import time
import antecede
from antecede.tables.kernels import jit
with jit.first_on_machine("all") as first:
    print(first, time.time())
    time.sleep(0.5 if first else 0)
    print(time.time())
"""


@pytest.mark.slow
def test_one_process_of_many_compiles_while_the_others_wait(tmp_path: Path) -> None:
    environ = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    running = [
        subprocess.Popen([sys.executable, "-c", FIRST], env=environ, stdout=subprocess.PIPE)
        for _ in range(3)
    ]
    said = sorted(process.communicate(timeout=120)[0].decode().split() for process in running)
    assert [words[0] for words in said] == ["False", "False", "True"]
    assert all(float(words[1]) >= float(said[2][2]) for words in said[:2])


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "getuid"), reason="no owners of folders here")
def test_where_a_user_has_no_folder_sparks_own_serves_if_nobody_else_writes_there(
    package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocked, spark = tmp_path / "a-file", tmp_path / "blockmgr"
    blocked.write_text("not a folder")
    spark.mkdir(mode=0o700)
    monkeypatch.setenv("XDG_CACHE_HOME", str(blocked))
    monkeypatch.setenv("SPARK_LOCAL_DIRS", f"{spark},{tmp_path / 'none'}")
    assert run(package, "") == ["60", "0", "True"]
    assert run(package, "") == ["60", "1", "True"]
    spark.chmod(0o777)
    assert run(package, "") == ["60", "0", "False"]


@pytest.mark.slow
def test_no_place_to_write_is_no_failure(package: Path, tmp_path: Path) -> None:
    blocked = tmp_path / "a-file"
    blocked.write_text("not a folder")
    assert run(package, blocked) == ["60", "0", "False"]


def test_configuration_of_numba_is_left_alone() -> None:
    settings = ("CACHE_DIR", "CACHE_LOCATOR_CLASSES")
    before = [vars(config)[name] for name in settings]
    compiled = jit.njit(abs_difference)
    assert compiled(3, 5) == 2
    assert before == [vars(config)[name] for name in settings]


def abs_difference(a: int, b: int) -> int:
    return abs(a - b)


def test_compiling_is_told_apart_from_work() -> None:
    from antecede.tables.kernels.compile_time import measure_compile_time

    @jit.inline
    def sum_up_to(n: int) -> int:
        total = 0
        for k in range(n):
            total += k
        return total

    with measure_compile_time() as cold:
        assert sum_up_to(10) == 45
    with measure_compile_time() as warm:
        assert sum_up_to(10) == 45
    assert cold.compiling_s > 0.01
    assert cold.working_s < cold.compiling_s + 1
    assert (warm.compiling_s, warm.words()) == (0.0, "")
    assert "s to compile the kernels, once" in cold.words() or cold.compiling_s < 0.05


def test_every_module_that_compiles_is_watched() -> None:
    top = Path(antecede.__file__).parent
    watched = {name for name, _ in jit._read_sources(top)}
    compiling = re.compile(r"^@(njit|inlined)", re.MULTILINE)
    found = [p for p in top.rglob("*.py") if compiling.search(p.read_text(encoding="utf-8"))]
    assert len(found) > 30
    assert [p for p in found if p.relative_to(top).as_posix() not in watched] == []
