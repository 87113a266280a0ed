"""What a checkpoint belongs to, as JSON, and the refusal of another stream over it."""

from __future__ import annotations

import json

from antecede.errors import InputError


def check_same_stream(before: str, now: str) -> None:
    """Compare what a checkpoint was written by with what goes on from it: two JSON objects.

    An empty text is a checkpoint of before this was kept: it is taken. Raises InputError that
    names each field that differs.
    """
    old, new = (json.loads(text) if text else {} for text in (before, now))
    changed = [
        f"{name} was {old.get(name)!r}, is {new.get(name)!r}"
        for name in sorted(old.keys() | new.keys())
        if old and old.get(name) != new.get(name)
    ]
    if changed:
        hint = ""
        if old.get("shards") != new.get("shards"):
            hint = f" (shards={old.get('shards')}, or leave it out and give checkpoint=)"
        elif old.get("digests") != new.get("digests"):
            hint = " (give checkpoint=, which goes on with the digests of before)"
        raise InputError(
            f"this checkpoint was written by another stream: {'; '.join(changed)}; bring that "
            f"back{hint}, or start from a new checkpoint"
        )
