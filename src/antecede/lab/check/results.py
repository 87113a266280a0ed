"""Results of a check: failures with counterexamples, and sizes of searches."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from antecede.lab.check.harness.effects import ContractError, EndlessEffectsError
from antecede.lab.check.harness.guarded_calls import CallTimeout
from antecede.lab.check.scenario.actions import Action, format_action
from antecede.lab.check.scenario.parse import Setup, format_scenario

if TYPE_CHECKING:
    from antecede.lab.check.harness.group_under_test import GroupUnderTest

EARLY = "delivered before a message of its causal past"
DELIVERED_TWICE = "delivered twice"
NEVER_SENT = "delivered but never sent"
WRONG_RECIPIENT = "delivered to a member that is not a receiver"
ORDER_DISAGREEMENT = "delivered in another order than at another member"
STUCK = "not delivered although all copies have arrived"
NEEDLESS_HOLD = "held although its whole causal past is delivered"
NO_EFFECT = "arrived without an effect"
WRONG_REASON = "held with a wrong reason"
WRONG_CLAIM = "claims that a member has a message that it lacks"
RAISED = "raised an error"
TIMED_OUT = "did not return in time"
CONTRACT_BROKEN = "breaks the contract of Protocol"
SHARED_STATE = "members share mutable state"
ENDLESS = "transmitted endlessly"
SNAPSHOT_CHANGED = "snapshot and restore change the behavior"
ENCODING_CHANGED = "encode and decode change the message"

LESS_SEVERE = (WRONG_REASON, NO_EFFECT, NEEDLESS_HOLD, WRONG_CLAIM, STUCK)
"""Failures after which the check goes on, the least severe first; all others are more severe."""

EXACT_CLOCKS = "nothing"
SHOWN_ACTIONS = 40


def make_relative_name(folder: Path, protocol: str) -> str:
    """Return FILE.py:CLASS with a path relative to a folder; other names unchanged."""
    file, _, name = protocol.rpartition(":")
    if not file.endswith(".py"):
        return protocol
    try:
        relative = os.path.relpath(Path(file).absolute(), folder.absolute())
    except ValueError:  # another drive has no relative path
        relative = str(Path(file).absolute())
    return f"{Path(relative).as_posix()}:{name}"


def classify_error(error: BaseException) -> str:
    """Return the kind of failure of an error from a member."""
    if isinstance(error, CallTimeout):
        return TIMED_OUT
    if isinstance(error, EndlessEffectsError):
        return ENDLESS
    return CONTRACT_BROKEN if isinstance(error, ContractError) else RAISED


class Failure(NamedTuple):
    """Broken promise and its shortest known counterexample."""

    what: str
    at: str
    label: str
    missing: tuple[str, ...]
    detail: str
    """Error or difference as text; may be empty."""
    actions: tuple[Action, ...]
    setting: str
    setup: Setup

    @classmethod
    def from_group(
        cls,
        group: GroupUnderTest,
        kind: str,
        at: str,
        label: str = "",
        *,
        missing: Iterable[str] = (),
        detail: str = "",
        actions: Iterable[Action] = (),
    ) -> Failure:
        """Return a failure of this group."""
        setting, setup = group.describe(), group.setup
        return cls(kind, at, label, tuple(missing), detail, tuple(actions), setting, setup)

    @property
    def severity(self) -> int:
        """Rank of the failure: its index in `LESS_SEVERE`, or one above."""
        return LESS_SEVERE.index(self.what) if self.what in LESS_SEVERE else len(LESS_SEVERE)

    def sentence(self) -> str:
        """Return the failure in one line."""
        what = (
            f"{self.label} at {self.at}: {self.what}" if self.label else f"{self.at}: {self.what}"
        )
        if self.missing:
            what += f" ({', '.join(self.missing)})"
        return f"{what}: {self.detail}" if self.detail else what

    def lines(self) -> list[str]:
        """Return the counterexample's actions as lines of a scenario."""
        return [format_action(action) for action in self.actions]

    def truncate_endless(self) -> Failure:
        """Return an endless run cut to its first actions; any other failure unchanged."""
        if self.what != ENDLESS or len(self.actions) <= SHOWN_ACTIONS:
            return self
        detail = f"the first {SHOWN_ACTIONS} of {len(self.actions)} actions are shown"
        return self._replace(actions=self.actions[:SHOWN_ACTIONS], detail=detail)

    def to_scenario(self, title: str = "", source: str = "", folder: Path | None = None) -> str:
        """Return the counterexample as scenario text; user files relative to `folder`."""
        protocol = (
            make_relative_name(folder, self.setup.protocol) if folder else self.setup.protocol
        )
        setup = self.setup._replace(protocol=protocol)
        return format_scenario(setup, self.actions, title=title, source=source)


class Exploration(NamedTuple):
    """Result of one exhaustive search."""

    setting: str
    states: int
    transitions: int
    complete: bool
    failure: Failure | None
    clocks: str = ""
    steps: str = ""


class Suite(NamedTuple):
    """Result of the runs on the adversarial network."""

    setting: str
    runs: int
    deliveries: int
    failure: Failure | None


class Verdict(NamedTuple):
    """Result of one `antecede check`."""

    target: str
    title: str
    promise: str
    explorations: tuple[Exploration, ...]
    suites: tuple[Suite, ...]

    @property
    def failures(self) -> tuple[Failure, ...]:
        """All failures, the most severe last."""
        found = [part.failure for part in self.explorations]
        found += [part.failure for part in self.suites]
        return tuple(sorted(filter(None, found), key=lambda one: one.severity))

    @property
    def ok(self) -> bool:
        """True without failures."""
        return not self.failures

    @property
    def states(self) -> int:
        """States explored in all searches together."""
        return sum(exploration.states for exploration in self.explorations)

    @property
    def runs(self) -> int:
        """Runs on the adversarial network."""
        return sum(suite.runs for suite in self.suites)

    def as_dict(self) -> dict[str, Any]:
        """Return the verdict as plain values for JSON."""
        return {
            "target": self.target,
            "promise": self.promise,
            "ok": self.ok,
            "states": self.states,
            "runs": self.runs,
            "explorations": [_to_dict(part) for part in self.explorations],
            "suites": [_to_dict(part) for part in self.suites],
        }


def _to_dict(part: Exploration | Suite) -> dict[str, Any]:
    plain = part._asdict()
    if part.failure is not None:
        failure = part.failure._asdict()
        del failure["setup"]
        scenario = part.failure.to_scenario()
        plain["failure"] = {**failure, "actions": part.failure.lines(), "scenario": scenario}
    return plain
