"""Editable scenario: a preamble, and a block for each action.

A block is the line of an action with the comments before it. Expected output (`= ...`) is dropped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from antecede.errors import InputError
from antecede.lab.check.scenario import (
    Action,
    Arrive,
    Join,
    Leave,
    Lose,
    Script,
    Send,
    Setup,
    line_of,
    parse_script,
)

SETTING: Final = ("title", "source", "protocol", "members", "internal", "external", "bounds",
                  "clock", "subscribe")  # fmt: skip
_CLAUSES: Final = frozenset({"to", "about", "after", "again", "sponsor"})
LONGEST: Final = 60


class EditError(InputError):
    """Impossible edit; the scenario is unchanged."""


class Block(NamedTuple):
    """Action and the comments before it."""

    lead: tuple[str, ...]
    action: Action
    line: str

    @property
    def said(self) -> str:
        """The line of the action in quotation marks."""
        return f"'{line_of(self.action)}'"

    def acting(self, action: Action) -> Block:
        """Return the block with another action."""
        return self if action == self.action else Block(self.lead, action, line_of(action))


class Scene(NamedTuple):
    """Scenario in parts."""

    path: str
    head: tuple[str, ...]
    blocks: tuple[Block, ...]
    tail: tuple[str, ...] = ()

    @classmethod
    def of(cls, text: str, path: str) -> Scene:
        """Return the parts of a text; raises ScenarioError."""
        script = parse_script(text, path)
        action_at = {command.line: command.action for command in script.commands}
        first = min(action_at, default=len(text.splitlines()) + 1)
        lines = list(enumerate(text.splitlines(), start=1))
        setting = [n for n, line in lines if n < first and _sets(line)]
        begin = max(setting, default=0)
        head: list[str] = []
        lead: list[str] = []
        blocks: list[Block] = []
        for number, line in lines:
            if line.strip().startswith("="):
                continue
            if number in action_at:
                blocks.append(Block(tuple(lead), action_at[number], line.strip()))
                lead = []
            elif number <= begin or _sets(line):
                head.append(line.strip())
            else:
                lead.append(line.rstrip())
        return cls(path, tuple(head), tuple(blocks), tuple(lead))

    def text(self) -> str:
        """Return the text, with one empty line after the preamble and no double empty lines."""
        lines = [*self.head, ""]
        for block in self.blocks:
            lines += [*block.lead, block.line]
        lines += self.tail
        kept = [line for k, line in enumerate(lines) if line or (k and lines[k - 1])]
        return "\n".join(kept).strip("\n") + "\n"

    def script(self) -> Script:
        """Return the parsed scenario; raises ScenarioError."""
        return parse_script(self.text(), self.path)

    @property
    def setup(self) -> Setup:
        """Parsed settings of the preamble."""
        return parse_script("\n".join(self.head), self.path).setup

    @property
    def actions(self) -> list[Action]:
        """Actions in order."""
        return [block.action for block in self.blocks]

    def with_actions(self, blocks: Iterable[Block]) -> Scene:
        """Return the scenario with other blocks."""
        return self._replace(blocks=tuple(blocks))

    def members(self) -> tuple[str, ...]:
        """Return all members, joining ones last."""
        return self.script().everybody()


def _sets(line: str) -> bool:
    return line.strip().split(" ")[0] in SETTING


def named_in(action: Action) -> tuple[str, ...]:
    """Return the members that an action names."""
    at = getattr(action, "at", None)
    own = () if at is None else (at,)
    if isinstance(action, Send):
        return (*own, *action.to)
    if isinstance(action, Join):
        return (*own, action.sponsor)
    return own


class Need(NamedTuple):
    """Constraint: block `later` must follow block `earlier`."""

    earlier: int
    later: int
    why: str
    exists: bool = True
    """False: only the order matters, `later` can exist without `earlier`."""


def needs(actions: Sequence[Action]) -> list[Need]:
    """Return the order constraints of every protocol that hold now."""
    return [
        need for later, action in enumerate(actions) for need in _needed(actions, later, action)
    ]


def _needed(actions: Sequence[Action], later: int, action: Action) -> Iterator[Need]:
    before = list(enumerate(actions[:later]))
    for k, other in before:
        if isinstance(other, Send):
            if isinstance(action, Arrive | Lose) and action.label == other.label:
                yield Need(k, later, f"{action.label} must be sent before it can arrive")
            elif isinstance(action, Send) and other.label in action.after:
                yield Need(
                    k,
                    later,
                    f"{action.label} replies to {other.label}, which must be sent before",
                    False,
                )
        if isinstance(other, Join) and other.at in named_in(action):
            at_home = isinstance(action, Send) and action.at != other.at
            yield Need(k, later, f"{other.at} must join before its other actions", not at_home)
        if isinstance(action, Leave) and action.at in named_in(other):
            yield Need(k, later, f"{action.at} cannot act after it has left", False)
    if isinstance(action, Arrive) and action.again:
        first = next((k for k, other in before if other == action._replace(again=False)), None)
        if first is not None:
            yield Need(
                first, later, f"{action.label} can arrive again only after its first arrival"
            )


def check_name(name: object) -> str:
    """Return the name of a new member; raises EditError for an invalid name."""
    if not isinstance(name, str) or not name.strip():
        raise EditError("missing name of a member")
    if len(name) > LONGEST:
        raise EditError(f"a name has at most {LONGEST} characters")
    if any(one.isspace() or not one.isprintable() for one in name):
        raise EditError(f"name '{name}' contains spaces or control characters; use one word")
    if name in _CLAUSES or "=" in name or name.endswith(":") or name.startswith("#"):
        raise EditError(f"name '{name}' is reserved in scenarios; use another name")
    return name


def list_of(blocks: Sequence[Block], most: int = 6) -> str:
    """Return the actions as a list for a sentence."""
    named = [block.said for block in blocks[:most]]
    more = len(blocks) - most
    return ", ".join(named) + (f" and {more} more" if more > 0 else "")


def changed_head(head: Sequence[str], line: str, removes: bool = False) -> tuple[str, ...]:
    """Return the preamble with a line replaced, added or removed.

    A line replaces the one with the same subject: the title, the clock of a member, the bounds of a
    channel. Raises EditError for a line that is no setting, or a missing line to remove.
    """
    key = _subject(line)
    if key is None:
        raise EditError(f"'{line}' is not a setting; choose from {', '.join(SETTING)}")
    there = [k for k, one in enumerate(head) if _subject(one) == key]
    if removes or line in ("title", "source"):
        if not there:
            raise EditError(f"no line '{' '.join(key)}'")
        return tuple(one for k, one in enumerate(head) if k not in there)
    if there:
        kept = ((k, one) for k, one in enumerate(head) if k not in there[1:])
        return tuple(line if k == there[0] else one for k, one in kept)
    place = _place_in(head, key[0])
    return (*head[:place], line, *head[place:])


def renamed_head(head: Sequence[str], name: Callable[[str], str | None]) -> tuple[str, ...]:
    """Return the preamble with members renamed by `name`; None removes a member."""
    lines = (_renamed_line(line, name) for line in head)
    return tuple(line for line in lines if line is not None)


def _setting_words(line: str) -> list[str]:
    words = line.split()
    return words if words and words[0] in SETTING else []


def _subject(line: str) -> tuple[str, ...] | None:
    word, *rest = _setting_words(line) or [""]
    if not word:
        return None
    if word == "bounds":
        return (word, *(one for one in rest if "=" not in one))
    if word in ("internal", "clock", "subscribe"):
        return (word, *rest[:1])
    return (word,)


def _place_in(head: Sequence[str], word: str) -> int:
    """Return the index of a new line: after its kind and the kinds before it."""
    rank = SETTING.index(word)
    places = [
        k + 1
        for k, line in enumerate(head)
        if (key := _subject(line)) is not None and SETTING.index(key[0]) <= rank
    ]
    return max(places, default=0)


def _renamed_line(line: str, name: Callable[[str], str | None]) -> str | None:
    word, *rest = _setting_words(line) or [""]
    if not word or word in ("title", "source", "protocol"):
        return line
    if word in ("members", "external"):
        made = [one for one in map(name, rest) if one is not None]
        kept = " ".join((word, *made)) if made else None
    elif word == "internal":
        over, peers = name(rest[0].removesuffix(":")), map(name, rest[1:])
        left = [one for one in peers if one is not None]
        kept = " ".join((word, f"{over}:", *left)) if over is not None and left else None
    elif word == "bounds":
        of = [one if "=" in one else name(one) for one in rest]
        kept = None if None in of else " ".join((word, *(one for one in of if one is not None)))
    else:
        at = name(rest[0])
        kept = None if at is None else " ".join((word, at, *rest[1:]))
    return line if kept is not None and kept.split() == [word, *rest] else kept
