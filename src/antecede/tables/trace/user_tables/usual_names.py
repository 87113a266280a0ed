"""Usual names of columns.

A column in `LIKELY_CAUSES` is read only if the first rows contain an id in it; else it is reported.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence

USUAL = {
    "id": ("event_id", "message_id", "msg_id", "id", "uuid"),
    "causes": (
        *("parents", "parent", "parent_id", "causes", "cause", "after"),
        *("caused_by", "in_reply_to", "reply_to"),
        *("parent_ids", "prev_events", "cause_id", "cause_ids", "causation_id", "causation_ids"),
        *("reply_to_id", "in_reply_to_id", "parent_event_id", "parent_event_ids"),
        *("parent_message_id", "depends_on", "predecessor", "predecessors", "triggered_by"),
    ),
    "member": ("member", "sender", "host", "node", "process", "agent", "author"),
    "send_time": ("send_time", "sent_at", "timestamp", "time", "ts"),
    "topics": ("topics", "topic", "channel"),
    "clock": ("clock", "vector_clock", "vc"),
    "text": ("text", "message", "msg", "event", "description"),
}
LIKELY_CAUSES = frozenset(
    {
        *("prev", "prevs", "previd", "prevhash", "previous", "previousid", "previoushash"),
        *("deps", "dependencies", "heads", "references", "refs", "links", "threadts", "threadid"),
        *("causalhistory", "history", "ancestors", "antecedents", "origin", "originid", "basedon"),
        *("previouseventid", "previousmessageid", "preveventid", "prevmessageid", "replyid"),
        *("parenthash", "parenthashes", "parenteventhash", "predecessorid", "predecessorids"),
    }
)
LATER_EVENTS = frozenset(
    {
        *("next", "nextid", "nexts", "nextids", "nextevents", "nexteventid", "child", "childid"),
        *("children", "childids", "successor", "successors", "successorid", "successorids"),
        *("replies", "effects", "followedby", "causesof"),
    }
)
_SEVERAL = re.compile(r"[\s,;|]+")


def simplify_name(name: str) -> str:
    """Return a name without case and punctuation."""
    return re.sub(r"[\W_]+", "", name.lower())


def find_usual(name: str, known: Sequence[str]) -> tuple[str, ...]:
    """Return the columns with a usual name for a column of the schema, the best first."""
    usual = (name, *USUAL.get(name, ()))
    lower = {column.lower(): column for column in reversed(known)}
    alike = {simplify_name(column): column for column in reversed(known)}
    return tuple(
        dict.fromkeys(
            names[spelling(one)]
            for names, spelling in ((lower, str.lower), (alike, simplify_name))
            for one in usual
            if spelling(one) in names
        )
    )


def find_likely_causes(known: Iterable[str]) -> list[str]:
    """Return the columns that contain causes in some tables."""
    return [column for column in known if simplify_name(column) in LIKELY_CAUSES]


def find_later_events(known: Iterable[str]) -> list[str]:
    """Return the columns that contain later events, not causes."""
    return [column for column in known if simplify_name(column) in LATER_EVENTS]


def find_id_columns(
    columns: Sequence[str],
    sample: Sequence[Mapping[str, object]],
    ids: frozenset[str],
    names: Callable[[object], Iterable[str]],
) -> list[str]:
    """Return the columns of the sample with one of `ids` in a cell."""
    return [
        column
        for column in columns
        if any(
            name in ids or not ids.isdisjoint(_SEVERAL.split(name))
            for record in sample
            for name in names(record.get(column))
        )
    ]


def describe_unread(likely: str, later: str) -> str:
    """Return the text on unread columns."""
    texts = []
    if likely:
        texts.append(f"{likely} may contain causes but is not read; give --after COLUMN to read it")
    if later:
        texts.append(
            f"{later} contains later events and is not read; causes are earlier events, so swap "
            "ids and causes first"
        )
    return "; ".join(texts)
