"""Comparison of the settings that all members share, for the error that names the difference.

The options of a HELLO begin with their hash. The shared settings follow in the clear, and a hash of
each option of the order: one line each, "NAME VALUE". With the hash alone, the error says only that
something differs.
"""

from __future__ import annotations

from collections.abc import Mapping

from antecede.live.settings import NS, Settings, fingerprint
from antecede.live.values import argument_name
from antecede.live.wire import TAG

MOST_BYTES = 4096
OPTION = "options."
SETTINGS = ("partition", "on_missing_parent", "verify_all_signatures", "evict_slow_after_ns")


def pack(settings: Settings) -> bytes:
    """Return the options of a HELLO, which begin with their hash."""
    lines = [f"{name} {value}" for name, value in _list_settings(settings).items()]
    return settings.tags()[1] + "\n".join(lines).encode()[: MOST_BYTES - TAG]


def same(settings: Settings, options: bytes) -> bool:
    """Return whether the other member has the same settings."""
    return options[:TAG] == settings.tags()[1]


def words(settings: Settings, options: bytes, there: str, here: str) -> str:
    """Return the differences as text. `there`, `here`: names of the two members."""
    ours = _list_settings(settings)
    text = options[TAG:MOST_BYTES].decode(errors="replace")
    theirs = dict(line.split(" ", 1) for line in text.split("\n") if " " in line)
    found = [
        f"its {argument_name(name)}= differs: {_format_value(name, theirs)} at {there}, "
        f"{_format_value(name, ours)} at {here}"
        for name in SETTINGS
        if theirs.get(name, ours[name]) != ours[name]
    ]
    names = sorted(one for one in ours.keys() | theirs.keys() if one.startswith(OPTION))
    found += [
        f"its options= differs in {name.removeprefix(OPTION)!r:.40}"
        + _whose(name in theirs, name in ours, there)
        for name in names
        if theirs and ours.get(name) != theirs.get(name)
    ]
    return "; ".join(found[:10]) or "its options= differs"


def _format_value(name: str, values: Mapping[str, str]) -> str:
    """Return a value as a program gives it, times in seconds."""
    value = values[name]
    if name.endswith("_ns") and value.isdecimal():
        return f"{int(value) / NS:g}"
    return f"{value!r:.40}"


def _whose(theirs: bool, ours: bool, there: str) -> str:
    if theirs and ours:
        return ""
    return f", given only by {there}" if theirs else f", not given by {there}"


def _list_settings(settings: Settings) -> dict[str, str]:
    told = {name: str(getattr(settings, name)) for name in SETTINGS}
    for name, value in sorted(settings.options.items()):
        told[OPTION + name] = fingerprint(repr(value)).hex()
    return told
