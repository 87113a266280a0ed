"""Error messages for nested documents without a reader, with commands that flatten them.

Known formats are recognized by their first record. The message describes another document by its
first list of objects, and another record by the nested object with an id.
"""

from __future__ import annotations

import itertools
import json
import re
import shlex
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from antecede.errors import InputError
from antecede.tables.trace.expressions import compile_expression, select_values
from antecede.tables.trace.user_tables.usual_names import USUAL

IDS = frozenset(USUAL["id"])
FOREIGN_KEYS = frozenset({"trace", "span", "parent", "cause", "user", "session", "correlation"})
"""Keys of objects whose ids are not the id of the event."""
FLAT_FILE = "flat.jsonl"
SAMPLE = 20
MAX_DEPTH = 4
MAX_OPEN, MAX_LISTS = 64, 64
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\]:,]')
_PLAIN_KEY = re.compile(r"[A-Za-z_]\w*")
_ZEEK_FIELDS = re.compile(r"^#fields\t(.*)$", re.MULTILINE)
_DECODER = json.JSONDecoder()


class NestedFormat(NamedTuple):
    """Known format of nested records."""

    name: str
    recognize: str
    """JMESPath expression that is true for a record."""
    filter: str
    """jq filter from a record to a flat object with an id."""


_DEBEZIUM = (
    "(.payload // .) | select(.op and .source) | (.source.table // .source.collection) as $table | "
    "(.source | [.lsn, .scn, .rs_id, .ssn, .commit_lsn, .change_lsn, .event_serial_no, .file, "
    '.pos, .row, .ts_ms, .ord] | map(select(. != null) | tostring) | join("-")) as $position | '
    '{id: "\\($table):\\($position):\\(.transaction.total_order // 0)", '
    "member: (.source.name // .source.db), time: .source.ts_ms, topic: $table, text: .op} + "
    '(.after // .before // {} | if type == "object" then with_entries(.key |= "row_" + .) '
    "else {} end)"
)
"""jq filter: columns become row_NAME; the position joins the fields of all connectors."""
FORMATS = (
    NestedFormat(
        "Debezium change events (envelopes with before, after, source, op)",
        "not_null(payload, @) | (source.connector || source.db) && op",
        _DEBEZIUM,
    ),
    NestedFormat(
        "Elasticsearch documents (_source)",
        "_id && type(_source) == 'object'",
        "._source + {id: ._id}",
    ),
    NestedFormat(
        "AWS CloudTrail records",
        "eventID && eventSource",
        ". + {id: .eventID, time: .eventTime, member: .eventSource}",
    ),
    NestedFormat(
        "Kubernetes objects",
        "metadata.uid",
        "{id: .metadata.uid, time: (.lastTimestamp // .metadata.creationTimestamp), "
        "member: .source.component, text: .message}",
    ),
)


def describe_document(head: str, path: Path) -> str:
    """Return the message for a file with the first text `head`; "" if it is no nested document."""
    head = head.lstrip("\ufeff \t\r\n")
    if head.startswith("#separator") and (fields := _ZEEK_FIELDS.search(head)):
        command = '/^#fields/ {sub(/^#fields\\t/, ""); print; next} !/^#/'
        awk = f"{_make_zcat_prefix(path)}awk -F'\\t' '{command}'{_make_input_argument(path)}"
        known = [name for name in ("uid", "fuid") if name in fields[1].split("\t")]
        id_option = f" --id {known[0]}" if known else ""
        return (
            f"a Zeek log with tabs; run: {awk} > flat.tsv, then read flat.tsv{id_option} --time ts"
        )
    if head[:1] not in ("{", "["):
        return ""
    if found := _describe_lists(head, path, needs_id=False):
        return found
    if "\n" in head.strip() and head.startswith("{"):
        return f"JSON objects of several lines each; run: {_make_jq_command('.', path)}"
    return ""


def describe_records(records: Iterable[Mapping[str, Any]], source: str) -> str:
    """Return the message for records without a top-level id; "" if there is no nested id."""
    for record in itertools.islice(records, SAMPLE):
        if known := _find_format(record):
            return f"these are {known.name}; run: {_make_jq_command(known.filter, Path(source))}"
        if keys := _find_id_keys(record):
            where = ".".join(keys)
            command = _make_jq_command(f". + {_make_jq_path(keys[:-1])}", Path(source))
            return f"ids seem to be nested at {where}; run: {command}"
        if found := _describe_lists(json.dumps(record, default=str), Path(source), needs_id=True):
            return f"the file is {found}"
    return ""


def _describe_lists(head: str, path: Path, *, needs_id: bool) -> str:
    """Return the message for the lists in a document; "" without lists or needed ids."""
    lists = list(_find_lists(head))
    for keys, first in lists:
        if known := _find_format(first):
            filter = f"{_make_jq_path(keys)}[] | {known.filter}"
            return f"a list of {known.name}; run: {_make_jq_command(filter, path)}"
    with_id = [keys for keys, first in lists if {*first} & IDS]
    if not with_id and (needs_id or not lists):
        return ""
    keys = with_id[0] if with_id else lists[0][0]
    where = f"a list of objects under {'.'.join(keys)}" if keys else "one list of objects"
    return (
        f"a JSON document with {where}; run: {_make_jq_command(f'{_make_jq_path(keys)}[]', path)}"
    )


def _find_format(record: Any) -> NestedFormat | None:
    for one in FORMATS:
        expression = compile_expression(one.recognize, one.name)
        try:
            if any(select_values(expression, record)):
                return one
        except InputError:
            continue
    return None


def _find_lists(head: str) -> Iterable[tuple[tuple[str, ...], dict[str, Any]]]:
    """Yield the keys to each list of objects, and its first object; the text may be truncated."""
    stack: list[tuple[str, str]] = []
    last = key = ""
    open_lists = found = 0
    for token in _TOKEN.finditer(head):
        mark = token[0]
        if mark[0] == '"':
            last = mark
        elif mark == ":":
            key = json.loads(last) if last else ""
        elif mark == ",":
            key = ""
        elif mark in "{[":
            is_within_list = open_lists > 0
            stack.append((mark, key))
            open_lists += mark == "["
            if len(stack) > MAX_OPEN or found == MAX_LISTS:
                return
            below = re.compile(r"\s*").match(head, token.end())
            start = below.end() if below else token.end()
            if mark == "[" and not is_within_list and head.startswith("{", start):
                found += 1
                try:
                    first, _ = _DECODER.raw_decode(head, start)
                except (ValueError, RecursionError):
                    first = {}
                yield tuple(name for _, name in stack if name), first
            key = ""
        elif stack:
            open_lists -= stack.pop()[0] == "["
            if not stack:
                return


def _find_id_keys(record: Mapping[str, Any]) -> tuple[str, ...]:
    level: list[tuple[tuple[str, ...], Any]] = [((), record)]
    for _ in range(MAX_DEPTH):
        below = [
            ((*keys, name), value)
            for keys, parent in level
            if isinstance(parent, Mapping)
            for name, value in parent.items()
        ]
        for keys, value in below:
            if len(keys) < 2 or keys[-2].lower() in FOREIGN_KEYS:
                continue
            if keys[-1].lower() in IDS and isinstance(value, str | int):
                return keys
        level = below
    return ()


def _make_jq_path(keys: Iterable[str]) -> str:
    path = ""
    for key in keys:
        path += (
            f".{key}" if _PLAIN_KEY.fullmatch(key) else f"{'' if path else '.'}[{json.dumps(key)}]"
        )
    return path or "."


def _make_jq_command(filter: str, path: Path) -> str:
    jq = f"{_make_zcat_prefix(path)}jq -c {shlex.quote(filter)}{_make_input_argument(path)}"
    return f"{jq} > {FLAT_FILE}, then read {FLAT_FILE}"


def _make_zcat_prefix(path: Path) -> str:
    return f"zcat {shlex.quote(str(path))} | " if path.suffix == ".gz" else ""


def _make_input_argument(path: Path) -> str:
    return "" if path.suffix == ".gz" else f" {shlex.quote(str(path))}"
