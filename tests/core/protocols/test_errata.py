"""Consistency of the pages of sources and errata with registry and scenarios."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from antecede.cli import COMMANDS, main
from antecede.cli.protocols.list_protocols import collect_facts
from antecede.core.clocks.bounds import Bounds
from antecede.core.clocks.nanoseconds import NS
from antecede.core.protocols.base import Deliver, Transmit
from antecede.core.protocols.registry import ENTRIES
from antecede.core.protocols.topics.messages import TopicMessage, make_timestamp
from antecede.core.protocols.topics.protocols import Tv, TvVt
from antecede.core.protocols.topics.relations import PUBLISHED, topics_precede
from antecede.core.protocols.topics.subscriptions import Subscriptions
from antecede.lab.check.harness.network import DELIVERED, SENT
from antecede.lab.check.scenario.actions import ShowHeld, ShowState
from antecede.lab.check.scenario.execution import ScenarioRun
from antecede.lab.check.scenario.parse import load_scenario
from antecede.lab.check.scenario.run import run_scenario

ROOT = Path(__file__).resolve().parents[3]
DOCS = ROOT / "docs"
PAGE = (DOCS / "errata.md").read_text(encoding="utf-8")
FIELDS = ("Where", "Printed", "Meant", "Wrong", "Shown by")
JUDGING = (DOCS / "design" / "checking.md").read_text(encoding="utf-8")
NUMBERED = re.compile(r"(?<!,)\b00[0-4]\b(?!%)")  # thousands are none


def entries() -> dict[int, str]:
    """Return the text of each erratum by its number."""
    parts = re.split(r"^### E(\d+)\. ", PAGE.partition("## Not errata")[0], flags=re.MULTILINE)
    return {int(number): text for number, text in zip(parts[1::2], parts[2::2], strict=True)}


def list_summary() -> Iterator[str]:
    """Yield the rows of the summary table, from the entries."""
    papers = re.split(r"^## ([^(\n]+) \(.*\)$", PAGE, flags=re.MULTILINE)[1:]
    for paper, text in zip(papers[::2], papers[1::2], strict=True):
        parts = re.split(r"^### E(\d+)\. (.*)$", text, flags=re.MULTILINE)[1:]
        for number, title, entry in zip(parts[::3], parts[1::3], parts[2::3], strict=True):
            fields = dict(re.findall(r"^- \*(.+?)\*: (.*)$", entry, flags=re.MULTILINE))
            anchor = re.sub(r"[^\w -]", "", f"E{number} {title}".lower())
            anchor = re.sub(r"[- ]+", "-", anchor)
            shown = fields["Shown by"]
            commands = re.findall(r"`antecede check [^`]+`", shown)
            tests = re.findall(r"`tests/[^`]+`", shown)
            wrong = fields["Wrong"].split(". ")[0].rstrip(".")
            place = fields["Where"].rstrip(".").replace("|", "\\|")
            proof = ", ".join(commands or tests) or "-"
            yield f"| [E{number}](#{anchor}) | {paper} | {place} | {title} | {wrong} | {proof} |"


def test_the_summary_has_every_erratum() -> None:
    summary = PAGE.partition("## Summary")[2].partition("\n## ")[0]
    rows = [line for line in summary.splitlines() if line.startswith("| [E")]
    assert rows == list(list_summary())
    assert len(rows) == len(entries())


def test_numbers_go_on_by_one_and_every_entry_says_everything() -> None:
    assert list(entries()) == list(range(1, len(entries()) + 1))
    for number, text in entries().items():
        assert [f for f in FIELDS if f"- *{f}*: " not in text] == [], f"E{number}"


def test_every_variant_that_shows_a_defect_is_named_and_every_one_that_is_named_exists() -> None:
    named = set(re.findall(r"`antecede check ([a-z-]+) --variant ([a-z0-9-]+)`", PAGE))
    defective = {(name, v) for name, entry in ENTRIES.items() for v in entry.defective}
    assert defective - named == set()
    assert named - {(n, v) for n, entry in ENTRIES.items() for v in entry.variants} == set()
    loose = set(re.findall(r"`([a-z-]+) --variant ([a-z0-9-]+)`", PAGE))
    assert all(variant in ENTRIES[name].variants for name, variant in loose)


def test_every_defect_that_a_command_finds_has_its_smallest_counterexample() -> None:
    for number, text in entries().items():
        if "*Shown by*: `antecede check" in text:
            assert "- *Smallest*: `scenarios/" in text, f"E{number}"


def test_every_file_that_is_named_exists() -> None:
    files = re.findall(r"`((?:scenarios|tests)/[^`]+)`", PAGE)
    assert files
    assert [name for name in files if not (ROOT / name).exists()] == []


# -- the table of misprints on the checker's page ---------------------------------------------


def table() -> dict[tuple[str, str], list[str]]:
    """Return (protocol, variant) -> erratum, what breaks, members, actions, file."""
    text = JUDGING.partition("## Published defects")[2].partition("\n\nScenarios")[0]
    rows = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| ")]
    assert rows[0][:2] == ["protocol", "variant"]
    found = {(name, variant): rest for name, variant, *rest in rows[1:]}
    assert len(found) == len(rows) - 1
    return found


def test_the_table_has_every_misprint_that_can_be_chosen_and_its_erratum() -> None:
    titles = dict(re.findall(r"^### (E\d+)\. (.*)$", PAGE, flags=re.MULTILINE))
    registered = {
        (name, variant): f"{entry.errata[variant]} {titles[entry.errata[variant]]}"
        for name, entry in ENTRIES.items()
        for variant in entry.defective
    }
    assert {key: row[0] for key, row in table().items()} == registered


def find_undelivered(run: ScenarioRun) -> set[tuple[str, str]]:
    """Return (message, member) of each message not delivered at a recipient."""
    owed = {(one.label, at) for one in run.occurrences() if one.kind == SENT for at in one.others}
    return owed - {(one.label, one.at) for one in run.occurrences() if one.kind == DELIVERED}


def _plain(value: object) -> str:
    """Return an option in the notation of a scenario."""
    return ",".join(value) if isinstance(value, tuple) else str(value).lower()


@pytest.mark.parametrize("key", table(), ids="-".join)
def test_every_row_says_what_its_counterexample_shows(key: tuple[str, str]) -> None:
    name, variant = key
    _, breaks, members, actions, file = table()[key]
    number = int(ENTRIES[name].errata[variant][1:])
    path = f"scenarios/{file.strip('`')}"
    assert f"`{path}`" in entries()[number]
    run = run_scenario(load_scenario(ROOT / path))
    setting = run.scenario.setup
    chosen = {option: _plain(value) for option, value in ENTRIES[name].options(variant).items()}
    assert setting.protocol == name
    defect = {"as_published", "pruning"} & chosen.keys()
    assert defect
    assert all(dict(setting.options)[option] == chosen[option] for option in defect)
    assert breaks == ("too early" if run.violations() else "never")
    assert run.violations() or find_undelivered(run)
    commands = [one.action for one in run.scenario.commands]
    assert int(members) == len(setting.everybody())
    assert int(actions) == sum(not isinstance(one, ShowState | ShowHeld) for one in commands)


def test_errata_that_other_pages_cite_exist() -> None:
    known = entries()
    for page in DOCS.rglob("*.md"):
        cited = {int(n) for n in re.findall(r"\bE(\d{1,2})\b", page.read_text(encoding="utf-8"))}
        assert cited <= known.keys(), page


def test_links_between_the_pages_lead_somewhere() -> None:
    for page in (DOCS / "sources.md", DOCS / "errata.md"):
        for link in re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8")):
            assert (page.parent / link).exists(), link


# -- no source by its number -----------------------------------------------------------------


def test_nothing_that_is_shown_names_a_source_by_a_number(
    capsys: pytest.CaptureFixture[str],
) -> None:
    shown = [json.dumps(collect_facts(entry)) for entry in ENTRIES.values()]
    for command in COMMANDS:
        with pytest.raises(SystemExit) as stop:
            main([command, "--help"])
        assert stop.value.code == 0
        shown.append(capsys.readouterr().out)
    assert len(shown) > len(ENTRIES) + 10
    assert [text for text in shown if NUMBERED.search(text)] == []


# -- errata that no variant shows ------------------------------------------------------------


def test_e15_by_maximum_the_next_message_of_a_sender_passes_one_that_is_held() -> None:

    def goes(clock: list[int], sender: int, t: list[int]) -> bool:
        others = [k for k in range(3) if k != sender]
        return clock[sender] == t[sender] - 1 and all(clock[k] <= t[k] for k in others)

    a, b, c = [0, 0, 1], [0, 1, 1], [0, 1, 2]
    clock = [0, 0, 0]
    assert goes(clock, 1, b)  # b overtakes its cause
    by_maximum = [max(mine, theirs) for mine, theirs in zip(clock, b, strict=True)]
    by_one = [0, 1, 0]
    assert by_maximum == [0, 1, 1]
    assert not goes(by_maximum, 2, a)
    assert not goes(by_one, 2, a)
    assert goes(by_maximum, 2, c)  # without a
    assert not goes(by_one, 2, c)


def test_e25_question_and_answer_carry_equal_vectors() -> None:
    """Tsuneizumi et al., 4.1: VT is carried, then its own entry incremented; maximum of others."""
    clocks = [[0, 0, 0] for _ in range(3)]

    def send(i: int) -> list[int]:
        carried = list(clocks[i])
        clocks[i][i] += 1
        return carried

    def receive(i: int, carried: list[int]) -> None:
        clocks[i] = [
            mine if j == i else max(mine, theirs)
            for j, (mine, theirs) in enumerate(zip(clocks[i], carried, strict=True))
        ]

    question = send(0)
    receive(1, question)
    assert send(1) == question


def test_e51_vectors_that_count_receipts_order_what_is_concurrent() -> None:
    """Nakayama 2017, section 3: vt_j = vt_j + 1 for all j other than i, on every receipt."""
    clocks = [[0, 0, 0] for _ in range(3)]

    def publish(i: int) -> list[int]:
        clocks[i][i] += 1
        return list(clocks[i])

    def receive(i: int) -> None:
        clocks[i] = [vt if j == i else vt + 1 for j, vt in enumerate(clocks[i])]

    first = publish(0)
    receive(2)
    receive(2)  # two events of others, of which the first is not one
    second = publish(2)
    assert all(one <= other for one, other in zip(first, second, strict=True))


def test_e51_vectors_that_count_receipts_miss_a_cause() -> None:
    topics = Subscriptions({0: ("x", "y"), 1: ("x",), 2: ("x", "y")})
    bounds: Bounds[int] = Bounds(accuracy_s=1, least_s=1, most_s=3)

    def vectors_in_order(as_published: bool) -> bool:
        a, b = (
            TvVt(me, range(3), subscriptions=topics, bounds=bounds, as_published=as_published)
            for me in range(2)
        )
        a.send("a1", now=0, topics=["y"])
        a2 = send_event(a, "a2", "x")
        b.receive(a2, now=NS)
        b1 = send_event(b, "b1", "x", now=NS)
        return b.relation.precedes(make_timestamp(a2), make_timestamp(b1), ("x", "y"))

    assert vectors_in_order(as_published=False)
    assert not vectors_in_order(as_published=True)


def send_event(member: Tv | TvVt, payload: str, topic: str, now: int = 0) -> TopicMessage:
    (effect,) = member.send(payload, now=now, topics=[topic])
    assert isinstance(effect, Transmit)
    message = effect.message
    assert isinstance(message, TopicMessage)
    return message


def test_e50_no_greater_orders_both_ways_and_both_are_delivered() -> None:
    topics = Subscriptions(dict.fromkeys(range(3), ("x",)))
    bounds: Bounds[int] = Bounds(accuracy_s=1, least_s=1, most_s=3)
    assert ENTRIES["tv"].options("no-greater") == {"reading": PUBLISHED}
    a, b, c = (
        Tv(me, range(3), subscriptions=topics, bounds=bounds, reading=PUBLISHED) for me in range(3)
    )
    one, other = send_event(a, "a1", "x"), send_event(b, "b1", "x")
    both = [
        (make_timestamp(one), make_timestamp(other)),
        (make_timestamp(other), make_timestamp(one)),
    ]
    assert all(topics_precede(e1, e2, ("x",), reading=PUBLISHED) for e1, e2 in both)
    assert not any(topics_precede(e1, e2, ("x",)) for e1, e2 in both)
    c.receive(other, now=NS)
    c.receive(one, now=NS)
    delivered = [one.message.payload for one in c.tick(20 * NS) if isinstance(one, Deliver)]
    assert delivered == ["a1", "b1"]


def test_e50_topics_not_in_common_are_unrelated_in_both_readings() -> None:
    topics = Subscriptions(dict.fromkeys(range(2), ("x", "y")))
    bounds: Bounds[int] = Bounds(accuracy_s=1, least_s=1, most_s=3)
    a, b = (Tv(me, range(2), subscriptions=topics, bounds=bounds) for me in range(2))
    one, other = make_timestamp(send_event(a, "a1", "x")), make_timestamp(send_event(b, "b1", "y"))
    for reading in ("all", PUBLISHED):
        assert not topics_precede(one, other, ("x", "y"), reading=reading)


def test_ratios_of_e11_and_e12() -> None:
    assert round(1500 / 400, 2) == 3.75
    assert round(4900 / 2700, 1) == 1.8
    inside, outside = (0.0612, 0.0611, 0.0603, 0.0583), (0.0685, 0.0728, 0.0735, 0.0719)
    assert max(inside) / min(inside) < 1.05 < 1.07 < max(outside) / min(outside)
    assert all(a != b for a, b in pairwise(outside))
