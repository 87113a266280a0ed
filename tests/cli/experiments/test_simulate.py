"""`antecede simulate`: templates, the report, JSON, traces, plots, and what is refused."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from antecede.cli.experiments.simulate.command import TEMPLATES, template
from antecede.cli.experiments.simulate.report import report
from antecede.lab.simulate import memory_guard
from antecede.lab.simulate.config.file import config_from, read_config
from antecede.lab.simulate.config.model import SimulationConfig, Workload
from antecede.lab.simulate.outputs.needless_holds import wait_counts
from antecede.lab.simulate.outputs.result import Result
from antecede.lab.simulate.reference_engine import run_readable
from antecede.lab.simulate.topology import Mesh, kind_of
from antecede.tables.trace.arrow import read
from tests.helpers.fixtures import Call, Patch

OPTIONAL = re.compile(r"#(\w+ = )")
"""A key that may be given, as templates write it: without a space."""
RTT = '[links]\nmatrix = { path = "rtt.csv", unit = "ms", round_trip = true }\n'
SMALL = '[topology]\nkind = "mesh"\npeers = 4\n[run]\nduration_s = 1\n'


@pytest.fixture
def small(tmp_path: Path) -> Path:
    return written(tmp_path / "small.toml")


def written(path: Path, more: str = "", start: str = SMALL) -> Path:
    path.write_text(start + more, encoding="utf-8")
    return path


@pytest.fixture
def words(said: Call) -> Call:
    """Return a function: words of the command -> its output with single blanks."""
    return lambda *given: " ".join(said("simulate", *given).split())


# -- templates -------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", TEMPLATES)
def test_a_template_is_printed_parses_and_runs(kind: str, tmp_path: Path, said: Call) -> None:
    text = said("simulate", "--template", kind)
    assert text == template(kind)
    assert max(map(len, text.splitlines())) <= 100
    text = text.replace("duration_s = 5.0", "duration_s = 1.5")
    path = written(tmp_path / "run.toml", start=text)
    assert kind_of(read_config(path).topology) == kind
    assert re.search(r"promise +0 of ", said("simulate", path))


@pytest.mark.parametrize("kind", TEMPLATES)
def test_every_key_that_a_template_offers_can_be_given(kind: str) -> None:
    lines = template(kind).splitlines()
    offered = [number for number, line in enumerate(lines) if OPTIONAL.match(line)]
    assert len(offered) > 10
    for number in offered:
        text = "\n".join([*lines[:number], lines[number][1:], *lines[number + 1 :]])
        if lines[number].startswith("#fanout"):
            text = text.replace('name = "idr"', 'name = "ses"')
        config_from(tomllib.loads(text))


# -- the report ------------------------------------------------------------------------------


def test_the_report_has_every_figure_of_the_run(small: Path, said: Call) -> None:
    text = said("simulate", small)
    words = " ".join(text.split())  # lines are folded at the terminal's width
    result, recording = run_readable(read_config(small), 0, True)
    figures, seen = result.figures, wait_counts(recording)
    assert seen is not None
    assert text.startswith(
        "idr, 4 peers in a mesh\ndelay 50-250 ms (normal, clipped), channels reorder\n"
    )
    early, of = figures["violations.by_delivery"], figures["violations.checked"]
    for part in (
        f"{figures['sent']} messages, {figures['arrivals']} arrivals",
        f"mean {figures['wait_ms.mean']:.1f} ms",
        f"{figures['peer.control_bytes']:.1f}",
        f"{figures['peer.wire_bytes']:.1f}",
        f"{early} of {of} deliveries before a cause that its sender had",
        f"{seen.unnecessary} of {of} deliveries were held after all their causes were delivered",
        f"0 of {of} deliveries broke the promised order",
    ):
        assert part in words


def test_what_promises_nothing_is_still_held_against_causality(small: Path, words: Call) -> None:
    text = words(written(small, '[protocol]\nname = "unordered"\n'))
    found = re.search(r"violations (\d+) of (\d+) deliveries before", text)
    assert found is not None
    assert 0 < int(found[1]) < int(found[2])
    assert "the protocol promises no order" in text
    assert not re.search(r"\b0 of \d+ deliveries (before|broke)", text)


def test_pairs_of_a_protocol_with_messages_of_its_own_are_said_to_be_of_the_others(
    small: Path, words: Call
) -> None:
    remark = "without control messages, retransmissions and relayed copies"
    for protocol, there in (("fifo", False), ("total", True)):
        text = words(written(small, f'[protocol]\nname = "{protocol}"\n'), "--false-causality")
        assert (remark in text) is there


def test_the_compiled_engine_says_that_it_does_not_look_for_unnecessary_waits(
    small: Path, words: Call
) -> None:
    text = words(small, "--engine", "compiled")
    assert "not counted causal.needless_holds: counted only by the reference engine" in text
    assert "0 of 153 deliveries before a cause that" in text


def told(figures: dict[str, float], size: int = 3, **more: Any) -> list[str]:
    return list(
        report([Result(SimulationConfig(Mesh(size)), 0, "compiled", figures, **more)], 1.0, 80)
    )


def test_figures_of_any_name_are_told() -> None:
    pairs = {"ordered": 9.0, "false_pairs": 5.0, "causal": 4.0, "missed_pairs": 0.0}
    figures = {f"false_causality.TV_LT.{name}": value for name, value in pairs.items()}
    caveats = {"violations.by_receipt": "no receipts", "violations.by_delivery": "no receipts"}
    lines = told({"sent": 3.0, **figures, "something.new": 1.25}, caveats=caveats)
    assert "pairs, TV_LT   4 causal by receipt, 9 ordered, 5 false, 0 missed" in lines
    assert "something.new  1.25" in lines
    assert "not counted    violations.by_receipt, violations.by_delivery: no receipts" in lines


def test_several_seeds_give_means_and_deviations(small: Path, said: Call) -> None:
    text = said("simulate", small, "--seeds", "3", "--seed", "5")
    assert "seeds 5 to 7, mean ± standard deviation" in text
    assert re.search(r"wait  mean \d+\.\d ± \d+\.\d ms", text)


def test_the_heading_tells_of_the_whole_network(
    tmp_path: Path, monkeypatch: Patch, said: Call
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    links = (
        'delay = "0-1 ms"\nmatrix = [[0, 0.1], [0.1, 0]]\nloss = 0.1\nduplicate = 0.2\nbuffer = 9\n'
        "service_s = 0.001\npartitions = [{ start_s = 0.1, end_s = 0.2, side = [0] }]\n"
        'special = [{ from = 0, to = "any", delay = "1 s" }]\n'
    )
    head = f'name = "{"long " * 20}\\u001b"\n{SMALL}[links]\n{links}'
    path = written(tmp_path / "run.toml", start=head.replace("peers = 4", "peers = 2"))
    text = said("simulate", path)
    assert max(map(len, text.splitlines())) <= 80
    assert "\x1b" not in text
    assert (
        "delay from a matrix and 0-1 ms (normal, clipped) and 1 other delay for some channels, "
        "channels reorder, 10.00% lost, 20.00% duplicated, 1 partition, 1 ms to process a copy, "
        "receive queue of 9 1 s of"
    ) in " ".join(text.split())


def test_one_is_one() -> None:
    lines = told({"sent": 1}, 1)
    assert lines[0] == "idr, 1 peer in a mesh"
    assert "sent  1 message" in lines


@pytest.mark.parametrize("width", [80, 120])
def test_the_report_fits_the_terminal(
    width: int, monkeypatch: Patch, tmp_path: Path, said: Call
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    text = template("hierarchy").replace("duration_s = 5.0", "duration_s = 1.5")
    lines = said("simulate", written(tmp_path / "run.toml", start=text)).splitlines()
    assert max(map(len, lines)) <= width


def test_json_has_the_names_of_a_result(small: Path, said: Call) -> None:
    found: dict[str, Any] = json.loads(
        said("simulate", small, "--json", "--seeds", "2", "--engine", "reference")
    )
    scenario = read_config(small)
    assert config_from(found["config"]) == scenario
    assert found["engine"] == "reference"
    for seed, run in enumerate(found["runs"]):
        result, recording = run_readable(scenario, seed, True)
        seen = wait_counts(recording)
        assert seen is not None
        assert run["seed"] == seed
        assert run["metrics"] == {**result.figures, **seen.figures()}
        assert run["series"] == {name: list(values) for name, values in result.series.items()}


# -- files -----------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_a_trace_is_of_the_format_that_its_name_says(
    ending: str, small: Path, tmp_path: Path, said: Call
) -> None:
    out, whole = tmp_path / f"run.{ending}", tmp_path / "run.parquet"
    for path in (out, whole):
        said("simulate", small, "--trace", path)
    columns = ["kind", "id", "member", "causes", "arrival"]
    found, expected = (read([path]).events.select(columns) for path in (out, whole))
    assert found.to_pylist() == expected.to_pylist()
    kinds, figures = found["kind"].to_pylist(), run_readable(read_config(small), 0).figures
    assert kinds.count("send") == figures["sent"]
    assert kinds.count("deliver") == figures["deliveries"]


@pytest.mark.parametrize(
    ("name", "text"),
    [("talk.parquet", '[workload]\nkind = "replay"\npath = "talk.parquet"\n'), ("rtt.csv", RTT)],
)
def test_no_file_that_the_scenario_reads_is_written_over(
    name: str, text: str, small: Path, tmp_path: Path, said: Call, refused: Call
) -> None:
    said("simulate", small, "--trace", tmp_path / "talk.parquet")
    (tmp_path / "rtt.csv").write_text("0 1\n1 0\n", encoding="utf-8")
    before = (tmp_path / name).read_bytes()
    call = ("simulate", written(small, text), "--trace", tmp_path / name, "--force")
    assert "is input of this command" in refused(*call)
    assert (tmp_path / name).read_bytes() == before


def test_plots_are_written_as_their_ending_says(small: Path, tmp_path: Path, said: Call) -> None:
    for name, start in (("plot.svg", b"<"), ("plot.png", b"\x89PNG")):
        said("simulate", small, "--output-plot", tmp_path / name)
        assert (tmp_path / name).read_bytes().startswith(start)


# -- what is refused -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ("", "no CONFIG: name a file, or print one with --template mesh"),
        ("FILE --seeds 0", "--seeds 0: expected 1 or more"),
        ("FILE --seed -1", "--seed -1: expected 0 or more"),
        ("FILE --trace x.csv --seeds 2", "--trace writes one run of the reference engine"),
        ("FILE --trace x --engine compiled", "--trace writes one run of the reference engine"),
        ("FILE --trace x", "unknown file ending; choose from .parquet, .csv"),
        ("FILE --trace FILE --force", "is input of this command"),
        ("FILE --output-plot FILE", "is input of this command"),
        ("FILE --output-plot x.pdf", "expected a file name that ends in .svg or .png"),
        ("none.toml", "none.toml: cannot read the file: No such file"),
    ],
)
def test_wrong_calls_are_refused(arguments: str, says: str, small: Path, refused: Call) -> None:
    assert says in refused("simulate", *arguments.replace("FILE", str(small)).split())


def test_a_wrong_key_is_named_with_its_file(small: Path, refused: Call) -> None:
    wrong = f"antecede: {small}: run.sample: unknown key; did you mean sample_s?"
    assert wrong in refused("simulate", written(small, "sample = 1\n"))


def test_a_compiled_run_too_large_is_refused_before_it_starts(
    small: Path, refused: Call, monkeypatch: Patch
) -> None:
    monkeypatch.setattr(memory_guard, "free_bytes", lambda: 1 << 10)
    text = refused("simulate", small, "--engine", "compiled")
    assert re.search(r"small\.toml: this run needs .* MiB .*; lower run\.duration_s", text)


@pytest.mark.slow
def test_what_auto_leaves_to_the_readable_engine_ends_before_memory_does(tmp_path: Path) -> None:
    large = SMALL.replace("peers = 4", "peers = 30").replace("duration_s = 1", "duration_s = 15")
    path = written(tmp_path / "run.toml", '[protocol]\nname = "linear"\n', large)
    program = f"""
import sys
from antecede.cli.experiments.simulate import command
from antecede.cli import main
from antecede.lab.simulate import memory_guard
command.SMALL, memory_guard.free_bytes = 0, lambda: 32 << 20
sys.exit(main(["simulate", {str(path)!r}]))
"""
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 2, ended
    assert re.search(r"used all 32 MiB .* after \d+% of its sending time", ended.stderr)


@pytest.mark.parametrize(
    ("table", "text", "says"),
    [
        ("protocol", 'name = "own.py:Mine"', r"protocol\.name: .*own\.py: file not found"),
        (
            "workload",
            'kind = "replay"\npath = ""',
            r"workload\.path: empty; expected the path of a trace",
        ),
        (
            "workload",
            'kind = "replay"\npath = "no.mbox"',
            r"workload\.path: no\.mbox: no such file",
        ),
        (
            "protocol",
            'name = "physical"\n[clocks]\naccuracy_s = 1',
            r"protocol\.options: physical: physical time alone cannot order",
        ),
    ],
)
def test_what_is_found_wrong_when_it_is_to_run_names_file_and_key(
    table: str, text: str, says: str, small: Path, refused: Call
) -> None:
    found = refused("simulate", written(small, f"[{table}]\n{text}"))
    assert re.search(rf"antecede: {re.escape(str(small))}: {says}", found)


def test_a_file_may_begin_with_a_byte_order_mark(small: Path) -> None:
    small.write_text(SMALL, encoding="utf-8-sig")
    assert read_config(small).duration_s == 1


def test_small_runs_load_no_compiled_kernels(small: Path) -> None:
    code = (
        "import sys; from antecede.cli import main; "
        f"main(['simulate', {str(small)!r}]); print('numba' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "False"


def test_a_workload_without_messages_gives_what_there_is() -> None:
    scenario = SimulationConfig(Mesh(3), workload=Workload("random", messages=0), duration_s=1.0)
    text = "\n".join(report([run_readable(scenario, 0)], 0.1, 80))
    assert "0 messages, 0 arrivals, 0 deliveries" in text
    assert "wait" not in text
