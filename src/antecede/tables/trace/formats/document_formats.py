"""Formats with one JSON object per event, described by JMESPath expressions.

Values of `causes` are ids, pairs that begin with an id (Matrix, room versions 1 and 2), or maps of
members to numbers, each giving the id MEMBER:NUMBER.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class DocumentFormat(NamedTuple):
    """Format with one JSON object per event."""

    name: str
    specification: str
    """Specification and version."""
    recognize: str
    """Expression that is true for an event of the format."""
    columns: Mapping[str, str]
    """Expressions by column of the schema."""
    time_unit: str = "s"
    """Unit of numeric times; text is ISO 8601."""
    lists: tuple[str, ...] = ()
    """Top-level keys that may hold the list of events."""
    scope: str = ""
    """Expression within whose value ids are unique: event ids become SCOPE:ID, causes are ID."""
    sequence: str = ""
    """Expression that orders the events of a scope."""
    has_counted_ids: bool = False
    """True if event MEMBER:NUMBER follows the event with the number before."""
    has_usual_causes: bool = False
    """True if keys with a usual name of causes are read, too; details report them."""
    no_id_advice: str = ""
    """Remedy in the message for events without an id."""


MATRIX = DocumentFormat(
    name="matrix",
    specification="Matrix 1.18: events of clients, and PDUs of room versions 1 to 12 with event_id",
    recognize="(event_id || prev_events) && sender && origin_server_ts && type(type) == 'string'",
    columns={
        "id": "event_id",
        "member": "sender",
        "topics": "room_id",
        "send_time": "origin_server_ts",
        "text": "not_null(content.body, type)",
        "causes": (
            "[prev_events, redacts, content.redacts, "
            'content."m.relates_to"."m.in_reply_to".event_id, content."m.relates_to".event_id][]'
        ),
    },
    time_unit="ms",
    lists=("messages", "chunk", "pdus"),
    no_id_advice="PDUs of room version 3 and later have no event_id; export events with it",
)
AUTOMERGE = DocumentFormat(
    name="automerge",
    specification="Automerge changes as JSON: 0.14 (deps by actor), 1 to 3 (deps by hash)",
    recognize=(
        "type(actor) == 'string' && type(seq) == 'number' && (type(deps) == 'object' || "
        "type(deps) == 'array' && type(hash) == 'string') && type(ops) == 'array'"
    ),
    columns={
        "id": "hash || join(':', [actor, to_string(seq)])",
        "member": "actor",
        "seq": "seq",
        "send_time": "[time][?@ != `0`] | [0]",
        "text": "message",
        "causes": "[deps][]",
    },
    lists=("changes",),
    has_counted_ids=True,
)
NOSTR = DocumentFormat(
    name="nostr",
    specification="Nostr events, NIP-01 and NIP-10 (2025): tags e",
    recognize=(
        "type(pubkey) == 'string' && type(id) == 'string' && type(tags) == 'array' && "
        "type(created_at) == 'number'"
    ),
    columns={
        "id": "id",
        "member": "pubkey",
        "send_time": "created_at",
        "text": "content",
        "causes": "tags[?[0] == 'e'] | [*][1]",
    },
)
CLOUDEVENTS = DocumentFormat(
    name="cloudevents",
    specification="CloudEvents 1.0.2 (JSON), extensions correlation (causationid) and sequence",
    recognize="specversion && id && source && type(type) == 'string'",
    columns={
        "id": "id",
        "member": "source",
        "send_time": "time",
        "text": "type",
        "causes": "[causationid][]",
    },
    scope="source",
    sequence="sequence",
    has_usual_causes=True,
)
FORMATS = (MATRIX, AUTOMERGE, NOSTR, CLOUDEVENTS)
