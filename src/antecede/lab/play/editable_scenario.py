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
    Scenario,
    Send,
    Setup,
    format_action,
    parse_scenario,
)

SETTINGS: Final = ("title", "source", "protocol", "members", "internal", "external", "bounds",
                  "clock", "subscribe")  # fmt: skip
_CLAUSES: Final = frozenset({"to", "about", "after", "again", "sponsor"})
MAX_NAME_LENGTH: Final = 60


class EditError(InputError):
    """Impossible edit; the scenario is unchanged."""


class Block(NamedTuple):
    """Action and the comments before it."""

    comments: tuple[str, ...]
    action: Action
    line: str

    @property
    def quoted(self) -> str:
        """The line of the action in quotation marks."""
        return f"'{format_action(self.action)}'"

    def replace_action(self, action: Action) -> Block:
        """Return the block with another action."""
        return (
            self if action == self.action else Block(self.comments, action, format_action(action))
        )


class EditableScenario(NamedTuple):
    """Scenario in parts."""

    path: str
    preamble: tuple[str, ...]
    blocks: tuple[Block, ...]
    tail: tuple[str, ...] = ()

    @classmethod
    def from_text(cls, text: str, path: str) -> EditableScenario:
        """Return the parts of a text; raises ScenarioError."""
        scenario = parse_scenario(text, path)
        action_at = {command.line: command.action for command in scenario.commands}
        first = min(action_at, default=len(text.splitlines()) + 1)
        lines = list(enumerate(text.splitlines(), start=1))
        setting = [n for n, line in lines if n < first and _is_setting(line)]
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
            elif number <= begin or _is_setting(line):
                head.append(line.strip())
            else:
                lead.append(line.rstrip())
        return cls(path, tuple(head), tuple(blocks), tuple(lead))

    def to_text(self) -> str:
        """Return the text, with one empty line after the preamble and no double empty lines."""
        lines = [*self.preamble, ""]
        for block in self.blocks:
            lines += [*block.comments, block.line]
        lines += self.tail
        kept = [line for k, line in enumerate(lines) if line or (k and lines[k - 1])]
        return "\n".join(kept).strip("\n") + "\n"

    def to_scenario(self) -> Scenario:
        """Return the parsed scenario; raises ScenarioError."""
        return parse_scenario(self.to_text(), self.path)

    @property
    def setup(self) -> Setup:
        """Parsed settings of the preamble."""
        return parse_scenario("\n".join(self.preamble), self.path).setup

    @property
    def actions(self) -> list[Action]:
        """Actions in order."""
        return [block.action for block in self.blocks]

    def replace_blocks(self, blocks: Iterable[Block]) -> EditableScenario:
        """Return the scenario with other blocks."""
        return self._replace(blocks=tuple(blocks))

    def list_members(self) -> tuple[str, ...]:
        """Return all members, joining ones last."""
        return self.to_scenario().list_members()


def _is_setting(line: str) -> bool:
    return line.strip().split(" ")[0] in SETTINGS


def find_members(action: Action) -> tuple[str, ...]:
    """Return the members that an action names."""
    at = getattr(action, "at", None)
    own = () if at is None else (at,)
    if isinstance(action, Send):
        return (*own, *action.to)
    if isinstance(action, Join):
        return (*own, action.sponsor)
    return own


class OrderConstraint(NamedTuple):
    """Constraint: block `later` must follow block `earlier`."""

    earlier: int
    later: int
    reason: str
    is_required: bool = True
    """False: only the order matters, `later` can exist without `earlier`."""


def find_constraints(actions: Sequence[Action]) -> list[OrderConstraint]:
    """Return the order constraints of every protocol that hold now."""
    return [
        need
        for later, action in enumerate(actions)
        for need in _find_constraints_of(actions, later, action)
    ]


def _find_constraints_of(
    actions: Sequence[Action], later: int, action: Action
) -> Iterator[OrderConstraint]:
    before = list(enumerate(actions[:later]))
    for k, other in before:
        if isinstance(other, Send):
            if isinstance(action, Arrive | Lose) and action.label == other.label:
                yield OrderConstraint(k, later, f"{action.label} must be sent before it can arrive")
            elif isinstance(action, Send) and other.label in action.after:
                yield OrderConstraint(
                    k,
                    later,
                    f"{action.label} replies to {other.label}, which must be sent before",
                    False,
                )
        if isinstance(other, Join) and other.at in find_members(action):
            at_home = isinstance(action, Send) and action.at != other.at
            yield OrderConstraint(
                k, later, f"{other.at} must join before its other actions", not at_home
            )
        if isinstance(action, Leave) and action.at in find_members(other):
            yield OrderConstraint(k, later, f"{action.at} cannot act after it has left", False)
    if isinstance(action, Arrive) and action.again:
        first = next((k for k, other in before if other == action._replace(again=False)), None)
        if first is not None:
            yield OrderConstraint(
                first, later, f"{action.label} can arrive again only after its first arrival"
            )


def check_name(name: object) -> str:
    """Return the name of a new member; raises EditError for an invalid name."""
    if not isinstance(name, str) or not name.strip():
        raise EditError("missing name of a member")
    if len(name) > MAX_NAME_LENGTH:
        raise EditError(f"a name has at most {MAX_NAME_LENGTH} characters")
    if any(one.isspace() or not one.isprintable() for one in name):
        raise EditError(f"name '{name}' contains spaces or control characters; use one word")
    if name in _CLAUSES or "=" in name or name.endswith(":") or name.startswith("#"):
        raise EditError(f"name '{name}' is reserved in scenarios; use another name")
    return name


def format_blocks(blocks: Sequence[Block], limit: int = 6) -> str:
    """Return the actions as a list for a sentence."""
    named = [block.quoted for block in blocks[:limit]]
    more = len(blocks) - limit
    return ", ".join(named) + (f" and {more} more" if more > 0 else "")


def update_preamble(preamble: Sequence[str], line: str, removes: bool = False) -> tuple[str, ...]:
    """Return the preamble with the line of the same subject replaced, added or removed."""
    key = _get_subject(line)
    if key is None:
        raise EditError(f"'{line}' is not a setting; choose from {', '.join(SETTINGS)}")
    there = [k for k, one in enumerate(preamble) if _get_subject(one) == key]
    if removes or line in ("title", "source"):
        if not there:
            raise EditError(f"no line '{' '.join(key)}'")
        return tuple(one for k, one in enumerate(preamble) if k not in there)
    if there:
        kept = ((k, one) for k, one in enumerate(preamble) if k not in there[1:])
        return tuple(line if k == there[0] else one for k, one in kept)
    place = _find_position(preamble, key[0])
    return (*preamble[:place], line, *preamble[place:])


def rename_in_preamble(
    preamble: Sequence[str], name: Callable[[str], str | None]
) -> tuple[str, ...]:
    """Return the preamble with members renamed by `name`; None removes a member."""
    lines = (_rename_in_line(line, name) for line in preamble)
    return tuple(line for line in lines if line is not None)


def _split_setting(line: str) -> list[str]:
    words = line.split()
    return words if words and words[0] in SETTINGS else []


def _get_subject(line: str) -> tuple[str, ...] | None:
    word, *rest = _split_setting(line) or [""]
    if not word:
        return None
    if word == "bounds":
        return (word, *(one for one in rest if "=" not in one))
    if word in ("internal", "clock", "subscribe"):
        return (word, *rest[:1])
    return (word,)


def _find_position(preamble: Sequence[str], word: str) -> int:
    rank = SETTINGS.index(word)
    places = [
        k + 1
        for k, line in enumerate(preamble)
        if (key := _get_subject(line)) is not None and SETTINGS.index(key[0]) <= rank
    ]
    return max(places, default=0)


def _rename_in_line(line: str, name: Callable[[str], str | None]) -> str | None:
    word, *rest = _split_setting(line) or [""]
    if not word or word in ("title", "source", "protocol"):
        return line
    if word in ("members", "external"):
        renamed = [one for one in map(name, rest) if one is not None]
        kept = " ".join((word, *renamed)) if renamed else None
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
