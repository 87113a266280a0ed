"""The study of Bhavanasi and Iyer: its runs, its traces, and its page with and without them."""

from __future__ import annotations

import io
import json
from pathlib import Path

import numpy as np
import pytest

from antecede.cli.experiments.reproduce import command
from antecede.errors import InputError
from antecede.lab.reproductions.framework.execute import execute_run, run_locally
from antecede.lab.reproductions.framework.runner import conduct
from antecede.lab.reproductions.framework.study import check_runs
from antecede.lab.reproductions.semantic.study import (
    DEFAULTS,
    STUDY,
    SWEEPS,
    add_traces,
    execute,
    list_runs,
)
from antecede.lab.reproductions.semantic.workload import digest_trace, make_trace_load

LOG = "[10:0{n}] <{nick}> hello\n"


def mails(path: Path, gap_s: int = 60, count: int = 40) -> Path:
    """Write a list of three authors in which every second mail answers the one before."""
    rows: list[dict[str, object]] = [
        {"id": f"m{k}", "parent": f"m{k - 1}" if k % 2 else None, "refs": [], "topic": "t",
         "sender": "abc"[k % 3], "seq": k, "date": 1000 + gap_s * k, "arrived": 1000 + gap_s * k,
         "committed": 1000 + gap_s * k}
        for k in range(count)
    ]  # fmt: skip
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.mark.parametrize("quick", [True, False])
def test_runs_are_plain_and_differ(quick: bool, tmp_path: Path) -> None:
    found = check_runs(list_runs(quick, [mails(tmp_path / "a.jsonl")]))
    assert {run.kind for run in found} == {"threads", "lists", "trace"}
    for name in SWEEPS:
        at = {run.parameters[name] for run in found if run.kind == "threads"}
        assert DEFAULTS[name] in at
        assert len(at) >= 3


def test_time_is_pressed_to_the_median_gap(tmp_path: Path) -> None:
    found = make_trace_load(str(mails(tmp_path / "a.jsonl")), None, 25.0)
    assert np.median(np.diff(found.time_us)) == pytest.approx(25_000, abs=2)
    assert sorted(set(found.sender)) == [0, 1, 2]
    assert found.parents is not None
    assert [len(one) for one in found.parents] == [0, 1] * 20


def test_authors_who_send_at_once_have_gaps_of_the_mean(tmp_path: Path) -> None:
    path = mails(tmp_path / "a.jsonl", gap_s=0)
    assert not make_trace_load(str(path), None, 10.0).time_us.any()


def test_content_decides_what_a_run_is(tmp_path: Path) -> None:
    path = mails(tmp_path / "a.jsonl")
    before = [run.digest() for run in add_traces([path]).runs(True)]
    assert before == [run.digest() for run in add_traces([path]).runs(True)]
    mails(path, gap_s=61)
    after = [run.digest() for run in add_traces([path]).runs(True)]
    other = [a != b for a, b in zip(before, after, strict=True)]
    assert other.count(True) == sum(run.kind == "trace" for run in add_traces([path]).runs(True))


def test_a_chat_is_its_links_and_its_log(tmp_path: Path) -> None:
    links, log = tmp_path / "c.annotation.txt", tmp_path / "c.ascii.txt"
    links.write_text("1 0 -\n")
    log.write_text(LOG.format(n=0, nick="a") + LOG.format(n=1, nick="b"))
    before = digest_trace(links)
    (tmp_path / "d.ascii.txt").write_text("another chat")
    assert digest_trace(links) == before
    log.write_text(LOG.format(n=0, nick="a") + LOG.format(n=1, nick="c"))
    assert digest_trace(links) != before


def test_a_worker_with_another_file_refuses(tmp_path: Path) -> None:
    path = mails(tmp_path / "a.jsonl")
    run = next(run for run in list_runs(True, [path]) if run.kind == "trace")
    mails(path, gap_s=61)
    with pytest.raises(InputError, match="the trace has changed since the first run"):
        execute(run)


@pytest.mark.parametrize(
    ("name", "message"), [("gone", "cannot read the file"), ("", "is a folder")]
)
def test_traces_that_are_none(name: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=message):
        add_traces([tmp_path / name])


def test_traces_of_one_name_are_told_apart(tmp_path: Path) -> None:
    (tmp_path / "x").mkdir()
    both = [mails(tmp_path / "a.jsonl"), mails(tmp_path / "x" / "a.jsonl", gap_s=61)]
    named = {r.parameters["trace"] for r in check_runs(list_runs(True, both)) if r.kind == "trace"}
    assert len(named) == 2


def test_other_studies_take_no_traces(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="--traces: vector takes no traces"):
        command._load_study("vector", [str(mails(tmp_path / "a.jsonl"))])


ONLY = ["threads/10 members/*", "lists/*", "trace/*"]


def test_a_page_with_and_without_traces(tmp_path: Path) -> None:
    path = mails(tmp_path / "a.jsonl")
    stream = io.StringIO()
    done = conduct(
        add_traces([path]), run_locally, tmp_path / "o", quick=True, only=ONLY, stream=stream
    )
    assert not done.failures
    sections = {section.title: section for section in done.findings.sections}
    assert {
        "Real threads",
        "Claims of Bhavanasi and Iyer",
        "Control information",
    } <= sections.keys()
    assert len(sections["Real threads"].table) == 2
    stated = sections["Claims of Bhavanasi and Iyer"].claims
    assert [claim.found for claim in stated if "delay" in claim.statement] == ["so in 3 of 3 cases"]
    without = conduct(STUDY, run_locally, tmp_path / "o", quick=True, only=ONLY, stream=stream)
    left_out = next(s for s in without.findings.sections if s.title == "Real threads")
    assert "--traces" in left_out.about
    assert not left_out.rows
    lists = sections["Ordering lists and the store of held messages"]
    assert [claim.holds for claim in lists.claims] == [True] * 3


def test_a_trace_of_one_author_orders_nothing(tmp_path: Path) -> None:
    path = mails(tmp_path / "a.jsonl", count=1)
    (run, *_) = (run for run in list_runs(True, [path]) if run.kind == "trace")
    assert dict(execute(run)) == {"sent": 1, "members": 1}
    table = execute_run(run, execute)
    assert not any(table["reason"].to_pylist())


def test_real_threads(shared_data: Path) -> None:
    path = shared_data / "lore" / "speakup.jsonl.gz"
    (run, *_) = (run for run in list_runs(True, [path]) if run.kind == "trace")
    found = execute(run._replace(parameters={**run.parameters, "messages": 300}))
    assert found["sent"] == 300
    assert 0 < found["sb.wait_ms.mean"] < found["causal.wait_ms.mean"]  # type: ignore[operator]
    assert found["causal.wait_ms.mean"] <= found["total.wait_ms.mean"]  # type: ignore[operator]
