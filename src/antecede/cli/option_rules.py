"""Rules of options that depend on each other, and refusal of options without effect.

A command lists its rules in `OPTION_RULES`. They drive the check of a call and the help. An option
with its default value counts as given if the call has it.
"""

from __future__ import annotations

import argparse
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from antecede.errors import InputError

Given = Mapping[str, str]
"""Options and arguments of a call, by attribute, as they are written on the command line."""
GIVEN = object()
"""In a condition: the call has the option."""


class OptionRule(NamedTuple):
    """Options that have an effect only beside another one, or not beside another one."""

    options: tuple[str, ...]
    others: tuple[tuple[str, Any], ...]
    """Attributes and their values, or GIVEN; one of them decides."""
    is_needed: bool
    why: str

    def is_broken(self, args: argparse.Namespace) -> bool:
        """Tell whether the options have no effect in a call."""
        given: Given = getattr(args, "given", {})
        met = any(
            name in given if value is GIVEN else getattr(args, name) == value
            for name, value in self.others
        )
        return met is not self.is_needed

    def describe(self, flags: Mapping[str, str]) -> str:
        """Return the condition as text: "without -o or --page"."""
        others = " or ".join(
            flags[name] if value is GIVEN else f"{flags[name]} {value}"
            for name, value in self.others
        )
        return f"{'without' if self.is_needed else 'beside'} {others}"


def needs(options: str, *given: str, why: str = "", **values: Any) -> OptionRule:
    """Return the rule of options (names separated by blanks) that need one of others."""
    return _rule(options, given, values, True, why)


def excludes(options: str, *given: str, why: str = "", **values: Any) -> OptionRule:
    """Return the rule of options that have no effect beside one of others."""
    return _rule(options, given, values, False, why)


def _rule(
    options: str, given: Sequence[str], values: Mapping[str, Any], is_needed: bool, why: str
) -> OptionRule:
    others = (*((name, GIVEN) for name in given), *values.items())
    return OptionRule(tuple(options.split()), others, is_needed, why)


def check_rules(
    args: argparse.Namespace, parser: argparse.ArgumentParser, rules: Sequence[OptionRule]
) -> None:
    """Raise InputError for an option that was given and has no effect beside the others."""
    flags = _flags(parser)
    for rule in rules:
        if rule.is_broken(args) and (wrong := _given(args, rule.options)):
            why = f" ({rule.why})" if rule.why else ""
            effect = "has no effect" if len(wrong) == 1 else "have no effect"
            raise InputError(
                f"{', '.join(wrong)} {effect} {rule.describe(flags)}{why}: leave out "
                f"{', '.join(wrong)}"
            )


def add_to_help(parser: argparse.ArgumentParser, rules: Sequence[OptionRule]) -> None:
    """Add the rules to the help of their options."""
    flags = _flags(parser)
    actions = {action.dest: action for action in parser._actions}
    for rule in rules:
        for name in rule.options:
            action = actions[name]
            action.help = f"{action.help or ''}; no effect {rule.describe(flags)}".lstrip("; ")


def given_of(parser: argparse.ArgumentParser, arguments: Sequence[str]) -> Given:
    """Return the options of a call; `parser` is one that has accepted it, and is used up."""
    written = _flags(parser)
    for one in (parser, *_commands(parser)):
        for action in one._actions:
            action.default = argparse.SUPPRESS
        one._defaults.clear()
    found = vars(parser.parse_args(arguments))
    return {name: written[name] for name, value in found.items() if name in written and value != []}


def refuse_unused(
    args: argparse.Namespace, why: str, *, unused: Collection[str] = (), but: Collection[str] = ()
) -> None:
    """Raise InputError for given options without effect; `why`: the reason.

    `unused`: attributes of `args`; without it, all `but` those.
    """
    given: Given = getattr(args, "given", {})
    names = unused or [name for name in given if name not in but and name != "command"]
    if wrong := _given(args, names):
        raise InputError(f"{why}: leave out {', '.join(wrong)}")


def check_seeds(args: argparse.Namespace) -> None:
    """Raise InputError for `--seed` or `--seeds` out of range."""
    if args.seeds < 1:
        raise InputError(f"--seeds {args.seeds}: the least is 1")
    if args.seed < 0:
        raise InputError(f"--seed {args.seed}: seeds are 0 or more")


def _given(args: argparse.Namespace, names: Collection[str]) -> list[str]:
    given: Given = getattr(args, "given", {})
    return [text for name, text in given.items() if name in names]


def _flags(parser: argparse.ArgumentParser) -> dict[str, str]:
    written: dict[str, str] = {}
    for one in (parser, *_commands(parser)):
        for action in one._actions:
            name = action.metavar if isinstance(action.metavar, str) else action.dest
            written[action.dest] = action.option_strings[-1] if action.option_strings else name
    return written


def _commands(parser: argparse.ArgumentParser) -> list[argparse.ArgumentParser]:
    subs = [one for one in parser._actions if isinstance(one, argparse._SubParsersAction)]
    return [command for sub in subs for command in sub.choices.values()]
