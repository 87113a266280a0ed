"""A published rule, broken by the smallest counterexample that the explorer finds right now.

The printed rule breaks its promises in two ways: it holds messages for ever (two messages show
it), and it delivers effects before their causes (three do). The tour shows the second, so the
explorer is told to ignore the first.
"""

from __future__ import annotations

from typing import NamedTuple

from antecede.check.explorer.explorer import SearchLimits, explore
from antecede.check.group_under_test import flat
from antecede.check.results import STUCK, UNNECESSARY, Failure
from antecede.check.script.execution import ScriptRun
from antecede.check.script.parse import parse_script
from antecede.check.script.run import run_script
from antecede.protocols.registry import entry

MEMBERS = 3
MESSAGES = 3


class Counterexample(NamedTuple):
    """What the explorer found, after how many states, and the script carried out."""

    states: int
    failure: Failure
    run: ScriptRun


def printed_bss() -> Counterexample:
    """Explore BSS with condition 2 as Sahai et al. 2020 print it, `C_j[k] <= t[k]`, until it
    breaks.
    """
    bss = entry("bss")
    options = bss.options("as-published")
    group = flat("bss", bss.load(), MEMBERS, options)
    found = explore(group, SearchLimits(MESSAGES, ignored=frozenset({UNNECESSARY, STUCK})))
    if found.failure is None:
        raise AssertionError("the printed condition 2 of BSS breaks within three messages")
    text = found.failure.script(
        "BSS with condition 2 as printed", "Sahai et al. 2020, Birman-Schiper-Stephenson Protocol"
    )
    return Counterexample(found.states, found.failure, run_script(parse_script(text)))
