"""`antecede protocols [NAME]`: protocols with order, guarantees and costs."""

from __future__ import annotations

import argparse
import itertools
import json
import re
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from antecede.core.protocols import (
    ENTRIES,
    SYMBOLS,
    Addressing,
    Guarantee,
    ProtocolEntry,
    entry,
    promise,
    relation_of,
    smallest,
)
from antecede.formatting import align

WIDTH = 100
COST_WIDTH = 21

KEPT = {
    "none": "none",
    "fifo": "of each sender",
    "delivery": "causal",
    "receipt": "causal (receipt)",
    "total": "one for all",
    "reply": "of replies",
    "topic": "causal on topics",
}
"""Relation -> text of the table."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `antecede protocols`."""
    parser.add_argument(
        "name", nargs="?", metavar="NAME", help="protocol to describe (default: a table of all)"
    )
    parser.add_argument("--json", action="store_true", help="print all facts as JSON")


def run(args: argparse.Namespace) -> int:
    """Print the table, or all facts of a protocol; return 0."""
    chosen = [entry(args.name)] if args.name else list(ENTRIES.values())
    facts = [collect_facts(one) for one in chosen]
    if args.json:
        print(json.dumps(facts, indent=2, ensure_ascii=False))
    else:
        print("\n".join(describe(facts[0]) if args.name else list_table(facts)))
    return 0


def collect_facts(found: ProtocolEntry) -> dict[str, Any]:
    """Return all facts of a protocol as plain values.

    The promises are those of the smallest group; a promise of roles must hold for all of them.
    """
    used = set(re.findall(r"(?<![A-Za-z])[a-z](?![A-Za-z])", f"{found.overhead} {found.storage}"))
    members = smallest(found, {})
    promised = [member.guarantee for member in members.values()]
    promises = {
        name: all(getattr(one, name) for one in promised)
        for name in Guarantee._fields
        if name not in ("relation", "remark", "needs_time")
    }
    addressing = {member.addressing for member in members.values()}
    return {
        "name": found.name,
        "title": found.title,
        "order": KEPT[relation_of(members).value],
        "relation": relation_of(members).value,
        **promises,
        "needs_time": any(one.needs_time for one in promised),
        "guarantee": promise(members),
        "addressing": addressing.pop().value if len(addressing) == 1 else Addressing.ALL.value,
        "overhead": found.overhead,
        "storage": found.storage,
        "symbols": {letter: words for letter, words in SYMBOLS.items() if letter in used},
        "source": found.source,
        "variants": [_variant(found, name) for name in found.variants],
        "page": f"docs/protocols/{found.page or found.name}.md",
    }


def _variant(found: ProtocolEntry, name: str) -> dict[str, Any]:
    members = smallest(found, found.options(name))
    return {
        "name": name,
        "options": {key: _plain(value) for key, value in found.variants[name].items()},
        "defective": name in found.defective,
        "erratum": found.errata.get(name, ""),
        "guarantee": promise(members),
        "survives_loss": all(member.guarantee.survives_loss for member in members.values()),
    }


def _plain(value: Any) -> Any:
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_plain(one) for one in value]
    return value if isinstance(value, str | int | float | None) else str(value)


# -- text ------------------------------------------------------------------------------------


def list_table(facts: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Yield the table of protocols, the meaning of its columns, and the next commands."""
    header = ("name", "order kept", "to", "a message", "a member keeps", "promise", "group")
    rows = [
        [textwrap.wrap(cell, COST_WIDTH) or [""] for cell in row]
        for row in (header, *map(_cells, facts))
    ]
    lines = [line for row in rows for line in itertools.zip_longest(*row, fillvalue="")]
    yield from align(lines, [True] * len(header))
    yield ""
    yield from _wrap("promise", _PROMISES)
    letters = {letter: words for one in facts for letter, words in one["symbols"].items()}
    yield from _wrap(
        "group", "open: members join and leave; join, leave: only that; fixed: neither"
    )
    yield from _wrap("costs", "; ".join(f"{k} {letters[k]}" for k in SYMBOLS if k in letters))
    yield ""
    yield "antecede protocols NAME: guarantee, source, variants · antecede check NAME: check it"


_PROMISES = (
    "exact: no causal violation, no needless hold; waits: some messages are held longer than "
    "needed; time: also until a time; loss: lost messages are recovered; early: causal violations "
    "are possible"
)


_GROUP = {
    (True, True): "open",
    (True, False): "join",
    (False, True): "leave",
    (False, False): "fixed",
}


def _cells(one: dict[str, Any]) -> tuple[str, ...]:
    return (
        one["name"],
        one["order"],
        one["addressing"],
        one["overhead"] or "?",
        one["storage"] or "?",
        _promise(one),
        _GROUP[one["joins"], one["leaves"]],
    )


def _promise(one: dict[str, Any]) -> str:
    if not one["safe"]:
        kept = "early"
    else:
        kept = "exact" if one["live"] and one["no_unnecessary_wait"] else "waits"
    extra = [
        word for word, field in (("time", "needs_time"), ("loss", "survives_loss")) if one[field]
    ]
    return ", ".join((kept, *extra))


def _wrap(head: str, text: str) -> Iterable[str]:
    indent = " " * 9
    return textwrap.wrap(f"{head:9}{text}", WIDTH, subsequent_indent=indent)


def describe(one: dict[str, Any]) -> Iterator[str]:
    """Yield all facts of a protocol."""
    yield f"{one['name']}: {one['title']}"
    letters = "; ".join(f"{letter} {words}" for letter, words in one["symbols"].items())
    costs = f"{one['overhead'] or '?'} per message, {one['storage'] or '?'} stored per member"
    for head, text in (
        ("source", one["source"]),
        ("promises", one["guarantee"]),
        ("sends to", _ADDRESSED[one["addressing"]]),
        ("costs", f"{costs} ({letters})" if letters else costs),
        ("page", one["page"]),
    ):
        yield from textwrap.wrap(f"  {head:10}{text}", WIDTH, subsequent_indent=" " * 12)
    for number, variant in enumerate(one["variants"]):
        options = ", ".join(f"{key}={value!r}" for key, value in variant["options"].items())
        erratum = f", erratum {variant['erratum']}" if variant["erratum"] else ""
        flaw = f"  (as published: defective{erratum})" if variant["defective"] else ""
        head = "variants" if not number else ""
        text = f"{variant['name']}: {options}{flaw}"
        yield from textwrap.wrap(f"  {head:10}{text}", WIDTH, subsequent_indent=" " * 14)


_ADDRESSED = {
    "all": "every other member",
    "members": "members that the sender names, or all",
    "topics": "members that subscribe to a topic of the message",
}
