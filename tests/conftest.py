"""Fixtures for all tests."""

from __future__ import annotations

import argparse
import os
import re
import signal
import zlib
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from tests.helpers.fixtures import refused, said  # noqa: F401

# The same draws at each run: a change fails for its own faults. `make nightly` draws new ones.
settings.register_profile("default", deadline=None, max_examples=20, derandomize=True)
settings.register_profile("nightly", deadline=None, max_examples=60)
settings.register_profile(
    "thorough", deadline=None, max_examples=2000, suppress_health_check=list(HealthCheck)
)
PROFILE = "nightly" if os.environ.get("ANTECEDE_NIGHTLY") else "default"
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", PROFILE))

ROOT = Path(__file__).resolve().parents[1]


def pytest_configure() -> None:
    """Hear Ctrl-C where nohup or a CI runner ignores it; processes of tests would inherit that."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Let tests that share something dear run in one process of pytest-xdist.

    Groups go by the name of a test, not by the mark `xdist_group`: pytest-xdist 3.8 writes it into
    an attribute that pytest 9.2 no longer reads, and all tests are spread in silence.
    """
    if config.getvalue("dist") != "loadgroup":
        return None
    from xdist.scheduler import LoadGroupScheduling  # type: ignore[import-untyped]

    class Grouped(LoadGroupScheduling):  # type: ignore[misc, unused-ignore]
        def _split_scope(self, nodeid: str) -> str:
            return group_of(nodeid)

    return Grouped(config, log)


_OWN_PROCESSES = (
    "tests/spark/test_random_kills.py",
    "tests/spark/test_session_java.py",
    "tests/spark/test_shipped.py",
    "tests/spark/test_study_cluster.py",
    "tests/spark/test_study_kill.py",
)
"""Files of Spark whose tests start sessions of their own: they need not wait for the shared one."""


def group_of(nodeid: str) -> str:
    """Return the group of a test: Spark's session, others' processes, a study, or itself."""
    if nodeid.startswith(_OWN_PROCESSES):
        return "processes"
    if nodeid.startswith("tests/spark/"):
        return "spark"
    if nodeid.startswith("tests/pipeline/"):
        return "pipeline"
    study = re.match(
        r"tests/lab/reproductions/test_(?:(?:findings|claims)\.py::.*\[(\w+)\]|(\w+)\.py)", nodeid
    )
    return f"study {study[1] or study[2]}" if study else nodeid


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Return the folder of real traces beside the clone; skip where it is absent."""
    folder = ROOT.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("no ../shared/data beside this clone: real traces are not part of the project")
    return folder


@pytest.hookimpl(tryfirst=True)  # before `-m` is applied
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect soak tests unless `-m` names them, and the nightly tests outside of `--part`."""
    mark_beyond_few(items)
    skips_soak = "soak" not in config.getoption("markexpr")

    def is_chosen(item: pytest.Item) -> bool:
        if skips_soak and item.get_closest_marker("soak"):
            return False
        if not any(map(item.get_closest_marker, ("slow", "judged"))):
            return True
        return is_in_part(item.nodeid, config.getoption("part"))

    chosen, left = list[pytest.Item](), list[pytest.Item]()
    for item in items:
        (chosen if is_chosen(item) else left).append(item)
    if left:
        config.hook.pytest_deselected(items=left)
        items[:] = chosen


def mark_beyond_few(items: list[pytest.Item]) -> None:
    """Mark the items of a test with `few(n)` as slow, but for the first n."""
    seen: Counter[str] = Counter()
    for item in items:
        if few := item.get_closest_marker("few"):
            name = item.nodeid.partition("[")[0]
            seen[name] += 1
            if seen[name] > few.args[0]:
                item.add_marker(pytest.mark.slow)


def is_in_part(nodeid: str, part: tuple[int, int]) -> bool:
    """Return True if a test is in a part, by a hash: a new test moves no other one."""
    number, count = part
    return zlib.crc32(nodeid.encode()) % count == number


def part_of(text: str) -> tuple[int, int]:
    """Return number and count of a part such as "3/12"."""
    found = re.fullmatch(r"(\d+)/(\d+)", text)
    if found is None or int(found[1]) >= int(found[2]):
        raise argparse.ArgumentTypeError(f"{text!r} is no part; parts are 0/12 to 11/12")
    return int(found[1]), int(found[2])


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--part",
        type=part_of,
        default=(0, 1),
        metavar="K/N",
        help="of the tests marked slow or judged, only the K-th of N parts, from 0",
    )
    parser.addoption(
        "--rewrite-scenarios",
        action="store_true",
        help="rewrite the expected output in scenarios/*.scenario",
    )
    parser.addoption(
        "--rewrite-goldens",
        action="store_true",
        help="rewrite the stored bytes in tests/golden: only while version 1 is not released",
    )
