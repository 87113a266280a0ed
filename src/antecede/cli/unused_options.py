"""Options that a command would not look at: refused, for whoever gives one expects an effect.

`antecede.cli.main` notes what the call gave (`Given`), so an option with its default value counts
as given too.
"""

from __future__ import annotations

import argparse
from collections.abc import Collection, Mapping, Sequence

from antecede.errors import InputError

Given = Mapping[str, str]
"""What a call gave, by the name of the attribute: as it is written on the command line."""


def given_of(parser: argparse.ArgumentParser, arguments: Sequence[str]) -> Given:
    """Return what a call gives; `parser` is one that has accepted it, and is used up."""
    written: dict[str, str] = {}
    for one in (parser, *_commands(parser)):
        for action in one._actions:
            action.default = argparse.SUPPRESS
            name = action.metavar if isinstance(action.metavar, str) else action.dest
            written[action.dest] = action.option_strings[-1] if action.option_strings else name
        one._defaults.clear()
    found = vars(parser.parse_args(arguments))
    return {name: written[name] for name, value in found.items() if name in written and value != []}


def refuse_unused(
    args: argparse.Namespace, why: str, *, unused: Collection[str] = (), but: Collection[str] = ()
) -> None:
    """Raise InputError for an option that was given and has no effect.

    `unused` names attributes of `args`; without it all are unused `but` those. `why` says what it
    is that makes them so.
    """
    given: Given = getattr(args, "given", {})
    wrong = [
        text
        for name, text in given.items()
        if (name in unused if unused else name not in but and name != "command")
    ]
    if wrong:
        raise InputError(f"{why}: leave out {', '.join(wrong)}")


def _commands(parser: argparse.ArgumentParser) -> list[argparse.ArgumentParser]:
    found: list[argparse.ArgumentParser] = []
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            found += action.choices.values()
    return found
