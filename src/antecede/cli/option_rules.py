"""Rules of options that depend on each other, and rejection of options without effect.

A command lists its rules in `OPTION_RULES`. They drive the check of a call and the help. An option
counts as given if the call contains it, also with its default value.
"""

from __future__ import annotations

import argparse
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from antecede.errors import InputError

Given = Mapping[str, str]
"""Options and arguments of a call: attribute -> name on the command line."""
GIVEN = object()
"""Condition that the call contains the option."""


class OptionRule(NamedTuple):
    """Options that have an effect only with another one, or only without it."""

    options: tuple[str, ...]
    others: tuple[tuple[str, Any], ...]
    """Attributes and their values, or GIVEN; any of them meets the condition."""
    is_needed: bool
    why: str
    is_in_help: bool
    """False: the help of the options says so already."""

    def is_broken(self, args: argparse.Namespace) -> bool:
        """Return whether the options have no effect in a call."""
        given: Given = getattr(args, "given", {})
        met = any(
            name in given if value is GIVEN else getattr(args, name) == value
            for name, value in self.others
        )
        return met is not self.is_needed

    def describe(self, flags: Mapping[str, str]) -> str:
        """Return the condition as text, such as "without --output"."""
        return f"{'without' if self.is_needed else 'with'} {self._list_others(flags)}"

    def describe_help(self, flags: Mapping[str, str]) -> str:
        """Return the condition for the help, such as "only with --output"."""
        return f"{'only' if self.is_needed else 'not'} with {self._list_others(flags)}"

    def _list_others(self, flags: Mapping[str, str]) -> str:
        return " or ".join(
            flags[name] if value is GIVEN else f"{flags[name]} {value}"
            for name, value in self.others
        )


def needs(
    options: str, *given: str, why: str = "", is_in_help: bool = True, **values: Any
) -> OptionRule:
    """Return the rule of options (names separated by blanks) that need one of others."""
    return _build_rule(options, given, values, True, why, is_in_help)


def excludes(
    options: str, *given: str, why: str = "", is_in_help: bool = True, **values: Any
) -> OptionRule:
    """Return the rule of options that have no effect with one of others."""
    return _build_rule(options, given, values, False, why, is_in_help)


def _build_rule(
    options: str,
    given: Sequence[str],
    values: Mapping[str, Any],
    is_needed: bool,
    why: str,
    is_in_help: bool,
) -> OptionRule:
    others = (*((name, GIVEN) for name in given), *values.items())
    return OptionRule(tuple(options.split()), others, is_needed, why, is_in_help)


def check_rules(
    args: argparse.Namespace, parser: argparse.ArgumentParser, rules: Sequence[OptionRule]
) -> None:
    """Raise InputError for a given option that has no effect with the others."""
    flags = _name_flags(parser)
    for rule in rules:
        if rule.is_broken(args) and (wrong := _list_given(args, rule.options)):
            why = f" ({rule.why})" if rule.why else ""
            effect = "has no effect" if len(wrong) == 1 else "have no effect"
            raise InputError(
                f"{', '.join(wrong)} {effect} {rule.describe(flags)}{why}: omit {', '.join(wrong)}"
            )


def add_to_help(parser: argparse.ArgumentParser, rules: Sequence[OptionRule]) -> None:
    """Add the rules to the help of their options."""
    flags = _name_flags(parser)
    actions = {action.dest: action for action in parser._actions}
    for rule in (rule for rule in rules if rule.is_in_help):
        for name in rule.options:
            action = actions[name]
            action.help = f"{action.help or ''}; {rule.describe_help(flags)}".lstrip("; ")


def find_given(parser: argparse.ArgumentParser, arguments: Sequence[str]) -> Given:
    """Return the options of a call that `parser` has accepted; the parser loses its defaults."""
    written = _name_flags(parser)
    for one in (parser, *_list_parsers(parser)):
        for action in one._actions:
            action.default = argparse.SUPPRESS
        one._defaults.clear()
    found = vars(parser.parse_args(arguments))
    return {name: written[name] for name, value in found.items() if name in written and value != []}


def refuse_unused(
    args: argparse.Namespace, why: str, *, unused: Collection[str] = (), but: Collection[str] = ()
) -> None:
    """Raise InputError for given options without effect.

    `unused`: attributes of `args` (default: all `but` those); `why`: reason, as text.
    """
    given: Given = getattr(args, "given", {})
    names = unused or [name for name in given if name not in but and name != "command"]
    if wrong := _list_given(args, names):
        raise InputError(f"{why}: omit {', '.join(wrong)}")


def check_seeds(args: argparse.Namespace) -> None:
    """Raise InputError for `--seed` or `--seeds` out of range."""
    if args.seeds < 1:
        raise InputError(f"--seeds {args.seeds}: expected 1 or more")
    if args.seed < 0:
        raise InputError(f"--seed {args.seed}: expected 0 or more")


def _list_given(args: argparse.Namespace, names: Collection[str]) -> list[str]:
    given: Given = getattr(args, "given", {})
    return [text for name, text in given.items() if name in names]


def _name_flags(parser: argparse.ArgumentParser) -> dict[str, str]:
    written: dict[str, str] = {}
    for one in (parser, *_list_parsers(parser)):
        for action in one._actions:
            name = action.metavar if isinstance(action.metavar, str) else action.dest
            written[action.dest] = action.option_strings[-1] if action.option_strings else name
    return written


def _list_parsers(parser: argparse.ArgumentParser) -> list[argparse.ArgumentParser]:
    subs = [one for one in parser._actions if isinstance(one, argparse._SubParsersAction)]
    return [command for sub in subs for command in sub.choices.values()]
