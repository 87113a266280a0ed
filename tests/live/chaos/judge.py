"""Judgement of a chaos run by the logs of its members alone; imports nothing of the library."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass
class Verdict:
    """Faults of a run, each in words, and how much there was to do."""

    acknowledged: int = 0
    handed_over: int = 0
    redelivered: int = 0
    starts: int = 0
    rss: int = 0
    """Largest resident memory of a member, bytes."""
    lost: list[str] = field(default_factory=list)
    """An acknowledged message, or one that another member was handed, is not here."""
    twice: list[str] = field(default_factory=list)
    """In one run of the program."""
    early: list[str] = field(default_factory=list)
    renamed: list[str] = field(default_factory=list)
    """One message under two ids."""
    died: list[str] = field(default_factory=list)
    held: list[str] = field(default_factory=list)
    """At the end."""

    @property
    def faults(self) -> list[str]:
        """What a sound run has none of."""
        faults = self.lost, self.twice, self.early, self.renamed, self.died, self.held
        return [one for some in faults for one in some]

    def __str__(self) -> str:
        counts = {
            name: len(getattr(self, name))
            for name in ("lost", "twice", "early", "renamed", "died", "held")
        }
        words = ", ".join(f"{count} {name}" for name, count in counts.items())
        return (
            f"{self.acknowledged} messages acknowledged, {self.handed_over} handed over, "
            f"{self.redelivered} of them again after a kill; {self.starts} starts; "
            f"{self.rss / 1e6:.0f} MB at most; {words}"
        )


def judge(folder: Path) -> Verdict:
    """Judge the logs of a folder."""
    logs = {path.stem: list(_entries(path)) for path in sorted(folder.glob("*.log"))}
    verdict = Verdict()
    sent: dict[str, str] = {}
    """Key of an acknowledged message -> its sender."""
    ids: dict[str, str] = {}
    handed = {name: _judge_member(name, entries, ids, verdict) for name, entries in logs.items()}
    for name, entries in logs.items():
        sent |= {one["k"]: name for one in entries if one["e"] == "S"}
    verdict.acknowledged = len(sent)
    owed = {**{key: key.partition(":")[0] for keys in handed.values() for key in keys}, **sent}
    for name in logs:
        lacking = [key for key, by in owed.items() if by != name and key not in handed[name]]
        verdict.lost += [f"{name} lacks {key}" for key in lacking]
    return verdict


def _entries(path: Path) -> Iterator[dict[str, Any]]:
    for line in path.read_text().splitlines():
        if line.endswith("}"):  # else a kill cut it short
            yield json.loads(line)


def _judge_member(
    name: str, entries: Iterable[dict[str, Any]], ids: dict[str, str], verdict: Verdict
) -> set[str]:
    """Judge one log; return the keys of all messages that the member was handed."""
    own, handed, in_this_run = set[str](), set[str](), set[str]()
    held = 0
    for one in entries:
        if one["e"] == "start":
            in_this_run = set()
            verdict.starts += 1
        elif one["e"] == "s":
            own.add(one["k"])
        elif one["e"] == "S":
            _check_id(one, ids, verdict)
        elif one["e"] == "die":
            verdict.died.append(f"{name}: {one['why']}")
        elif one["e"] == "st":
            verdict.rss, held = max(verdict.rss, one["rss"]), one["held"]
        elif one["e"] == "D":
            key = one["k"]
            verdict.handed_over += 1
            verdict.redelivered += key in handed
            _check_id(one, ids, verdict)
            if key in in_this_run:
                verdict.twice.append(f"{name} was handed {key} twice")
            causes = [*one["a"], *([one["p"]] if one["p"] else [])]
            missing = [cause for cause in causes if cause not in handed and cause not in own]
            verdict.early += [f"{name} was handed {key} before {cause}" for cause in missing]
            in_this_run.add(key)
            handed.add(key)
    if held:
        verdict.held.append(f"{name} holds {held} batches")
    return handed


def _check_id(entry: dict[str, Any], ids: dict[str, str], verdict: Verdict) -> None:
    before = ids.setdefault(entry["k"], entry["id"])
    if before != entry["id"]:
        verdict.renamed.append(f"{entry['k']} is {before} and {entry['id']}")
