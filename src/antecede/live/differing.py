"""What all members give alike beside room and order, so that who differs is told in what.

Behind the fingerprint of a greeting's options stand the settings in the clear, since they are no
secrets, and a fingerprint of each option of the order: a line each, "NAME VALUE". Who says only
the fingerprint is told that something differs.
"""

from __future__ import annotations

from collections.abc import Mapping

from antecede.live.settings import NS, Settings, fingerprint
from antecede.live.values import told
from antecede.live.wire import TAG

MOST_BYTES = 4096
OPTION = "options."
SETTINGS = ("partition", "on_missing_parent", "verify_all_signatures", "evict_slow_after_ns")


def pack(settings: Settings) -> bytes:
    """Return what a greeting says of the options; it begins with the fingerprint that counts."""
    lines = [f"{name} {value}" for name, value in _told(settings).items()]
    return settings.tags()[1] + "\n".join(lines).encode()[: MOST_BYTES - TAG]


def same(settings: Settings, options: bytes) -> bool:
    """Tell whether the other end gives the same."""
    return options[:TAG] == settings.tags()[1]


def words(settings: Settings, options: bytes, there: str, here: str) -> str:
    """Return what differs, in words. `there`, `here`: names of the other end's member, and ours."""
    ours = _told(settings)
    text = options[TAG:MOST_BYTES].decode(errors="replace")
    theirs = dict(line.split(" ", 1) for line in text.split("\n") if " " in line)
    found = [
        f"its {told(name)}= differs: {_shown(name, theirs)} at {there}, {_shown(name, ours)} at "
        f"{here}"
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


def _shown(name: str, values: Mapping[str, str]) -> str:
    """Return a value as a program gives it: times in seconds."""
    value = values[name]
    if name.endswith("_ns") and value.isdecimal():
        return f"{int(value) / NS:g}"
    return f"{value!r:.40}"


def _whose(theirs: bool, ours: bool, there: str) -> str:
    if theirs and ours:
        return ""
    return f", which {there} alone gives" if theirs else f", which {there} does not give"


def _told(settings: Settings) -> dict[str, str]:
    told = {name: str(getattr(settings, name)) for name in SETTINGS}
    for name, value in sorted(settings.options.items()):
        told[OPTION + name] = fingerprint(repr(value)).hex()
    return told
