"""User hierarchies: FILE.py:FUNCTION returns a target."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from antecede.cli import main
from antecede.errors import InputError, OptionError
from antecede.lab.check.check import find_target, run_check
from antecede.lab.check.conformance import SuitePlan, conform
from antecede.lab.check.results import EARLY, RAISED, STUCK, Failure
from antecede.lab.check.target import Target, load_target

EXAMPLE = Path(__file__).parents[3] / "examples" / "own_super_peer.py"
HEAD = """
from antecede.lab.check.target import Target
from antecede.core.protocols.base import Deliver, Discard, Protocol, Transmit
from antecede.core.protocols.hierarchical.messages import Downward, External
from antecede.core.protocols.hierarchical.roles import (
    ExternalPeer, InternalPeer, SuperPeer, Topology, hierarchical
)

def with_super_peers(made):
    def processes(topology):
        members = hierarchical(topology)
        for me, group in topology.groups.items():
            members[me] = made(me, group, topology.external, topology.super_peers)
        return members
    return processes

"""


OF_MINE = """
def target():
    return Target("mine", with_super_peers(Mine), Topology)
"""


def write_target(folder: Path, body: str) -> str:
    (folder / "mine.py").write_text(HEAD + dedent(body))
    return f"{folder / 'mine.py'}:target"


def explore_target(target: str) -> Failure:
    return run_check(target, messages=2, first_failure=True).failures[0]


@pytest.mark.slow
def test_a_right_hierarchy_of_the_example_passes() -> None:
    verdict = run_check(f"{EXAMPLE}:careful", messages=2, quick=True)
    assert verdict.ok
    assert verdict.title == "careful"


def test_a_wrong_hierarchy_of_the_example_is_refuted() -> None:
    failure = explore_target(f"{EXAMPLE}:careless")
    assert (failure.what, failure.at, failure.missing) == (EARLY, "X", ("a1",))
    assert failure.setup.internal == (("S", ("A",)),)


def test_the_page_names_the_example_and_its_function() -> None:
    page = (EXAMPLE.parents[1] / "docs" / "own-protocol.md").read_text()
    assert 'return Target("careless", ' in EXAMPLE.read_text()
    assert 'return Target("careless", ' in page
    assert "examples/own_super_peer.py:careful" in page


def test_a_counterexample_is_saved_and_explained(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    saved = tmp_path / "it.scenario"
    assert (
        main(["check", f"{EXAMPLE}:careless", "--messages", "2", "--output-scenario", str(saved)])
        == 1
    )
    assert "internal S: A" in saved.read_text()
    capsys.readouterr()
    main(["draw", str(saved)])
    assert "delivered before its cause" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("body", "what"),
    [
        (  # every other message for its group is dropped
            """
            class Mine(SuperPeer):
                def receive(self, message, *, now=None):
                    return [
                        e for e in super().receive(message, now=now)
                        if not isinstance(e.message, Downward) or e.message.seq % 2
                    ]
            """,
            STUCK,
        ),
        (  # only first messages are taken from the external group
            """
            class Mine(SuperPeer):
                def receive(self, message, *, now=None):
                    if isinstance(message, External) and message.seq > 1:
                        return [Discard(message, "not the first")]
                    return super().receive(message, now=now)
            """,
            STUCK,
        ),
        (  # no causes for the external group
            """
            class Mine(SuperPeer):
                def receive(self, message, *, now=None):
                    return [
                        Transmit(e.to, e.message._replace(counts=(), vectors=()))
                        if isinstance(e, Transmit) and isinstance(e.message, External) else e
                        for e in super().receive(message, now=now)
                    ]
            """,
            EARLY,
        ),
        (
            """
            class Mine(SuperPeer):
                def receive(self, message, *, now=None):
                    raise KeyError(message.sender)
            """,
            RAISED,
        ),
    ],
    ids=["held", "forgetful", "careless", "raising"],
)
def test_wrong_super_peers_are_refuted(tmp_path: Path, body: str, what: str) -> None:
    assert explore_target(write_target(tmp_path, dedent(body) + OF_MINE)).what == what


def test_a_super_peer_that_forgets_causes_after_five_messages_is_refuted(tmp_path: Path) -> None:
    body = """
    class Mine(SuperPeer):
        def receive(self, message, *, now=None):
            effects = super().receive(message, now=now)
            if self.number <= 5:
                return effects
            return [
                Transmit(e.to, e.message._replace(vectors=of_others(e.message, self.me)))
                if isinstance(e, Transmit) and isinstance(e.message, External) else e
                for e in effects
            ]

    def of_others(message, me):
        return tuple(pair for pair in message.vectors if pair[0] != me)
    """
    made = find_target(write_target(tmp_path, dedent(body) + OF_MINE))
    suite = conform(made.hierarchy((2, 1), 1), SuitePlan(runs=60), 0)
    assert suite.failure is not None
    assert suite.failure.what == EARLY


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("other = 1", "unknown class or function target"),
        ("def target(topology, x=1): pass", r"target\(topology, x=1\) takes arguments; it is"),
        (
            "def target(): return 3",
            r"target\(\) returns a int, not an antecede\.lab\.check\.target\.",
        ),
        ("def target(): raise KeyError('x')", r"target\(\) fails: KeyError: 'x'"),
        (
            "def target(): return Target('x', 3, Topology)",
            r"factory of the Target of .* is 3; expected",
        ),
        ("def target(): return Target('x', hierarchical, 3)", r"topology of the Target of .* is 3"),
        (
            "def target(): return Target('x', lambda t: {}, Topology)",
            r"lacks address 0 \(internal peer\), 1 \(super peer\), 2 \(external peer\)",
        ),
        (
            "def flat(t): return {k: v for k, v in hierarchical(t).items() if k != 1}\n"
            "def target(): return Target('x', flat, Topology)",
            r"lacks address 1 \(super peer\)",
        ),
        (
            "def more(t): return {**hierarchical(t), 7: hierarchical(t)[2]}\n"
            "def target(): return Target('x', more, Topology)",
            r"it adds 7",
        ),
        (
            "def target(): return Target('x', lambda t: [], Topology)",
            r"returns a list, not address -> process",
        ),
        (
            "def target(): return Target('x', lambda t: {0: 1, 1: 2, 2: 3}, Topology)",
            r"internal peer of target\(\) is a int, not a protocol",
        ),
        (
            "def fails(t): raise ValueError('no')\n"
            "def target(): return Target('x', fails, Topology)",
            r"construction of the smallest group of target\(\) failed: ValueError: no",
        ),
    ],
)
def test_a_function_that_cannot_be_used_is_refused(tmp_path: Path, body: str, words: str) -> None:
    with pytest.raises(InputError, match=words) as found:
        load_target(write_target(tmp_path, body))
    assert "mine.py" in str(found.value)


def test_options_of_the_factory_are_read_by_type(tmp_path: Path) -> None:
    target = write_target(tmp_path, "def target(): return Target('x', hierarchical, Topology)")
    found = load_target(target, [("flush_after", "3")])
    assert isinstance(found, Target)
    assert found.options == {"flush_after": 3}
    with pytest.raises(OptionError, match="has no option 'nothing'"):
        load_target(target, [("nothing", "3")])


@pytest.mark.parametrize("words", [["compare", "bss"], ["check", "--variant", "x"]])
def test_other_commands_refuse_a_function(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([words[0], f"{EXAMPLE}:careless", *words[1:]]) == 2
    said = capsys.readouterr().err
    assert "is a function" in said or "variants are for built-in protocols" in said
