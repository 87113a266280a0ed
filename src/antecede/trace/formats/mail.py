"""Mail: mailboxes in mbox format, and archives as JSON lines.

A mail's cause is its `In-Reply-To`, else the last of its `References`: one parent, as a reply
answers one mail. `send_time` is the author's Date, `arrival` the topmost Received header (the
clock of the archive's own server), else the time in the mbox's `From ` line, which is UTC.

JSON lines hold one object a mail: `id`, `parent` (else the last of `refs`), `sender`, `topic`,
`date`, `arrived` and `committed` in seconds since 1970, and `seq`, the position in which the
archive took the mail in.

Both are read a line at a time; only headers are kept, so files may be larger than memory.
"""

from __future__ import annotations

import email.utils
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from antecede.errors import InputError
from antecede.trace import text
from antecede.trace.reader import NO_ID, Item, ReadOptions
from antecede.trace.schema import SEND, Event, Quarantined

MAX_HEADER_LINES = 10_000
_FROM = re.compile(r"From \S.*\d{1,2}:\d{2}.*\d{4}|From \S+@\S+|From MAILER-DAEMON")
_FROM_TIME = re.compile(r"\w{3} +\w{3} +\d{1,2} +\d{2}:\d{2}:\d{2} +\d{4}")
_MESSAGE_ID = re.compile(r"<([^<>\s]+)>")
_HEADER = re.compile(r"([!-9;-~]+)[ \t]*:[ \t]*(.*)")
_KEYS = {"id", "parent", "refs", "sender", "topic", "date", "arrived", "committed"}


class MailReader:
    """Reader of mbox files and JSON lines of mails; see the module."""

    name = "mail"
    uses: tuple[str, ...] = ()

    def sniff(self, path: Path, head: bytes) -> float:
        """Recognize the first mail."""
        first = _first(text.decode(head))
        if first.startswith("{"):
            try:
                record = json.loads(first)
            except (ValueError, RecursionError):
                return 0.0
            wanted = {"id", "sender", "parent"}
            return 0.9 if wanted <= record.keys() and len(_KEYS & record.keys()) > 4 else 0.0
        return 0.9 if _FROM.match(first) else 0.0

    def read(self, path: Path, options: ReadOptions) -> Iterator[Item]:
        """Yield every mail of the file."""
        source = str(path)
        head, _ = text.read_up_to(path, text.HEAD_BYTES)
        as_json = _first(text.decode(head)).startswith("{")
        try:
            yield from _json_lines(path, source) if as_json else _mbox(path, source)
        except InputError as error:
            if error.line is None:  # the file cannot be opened; else it breaks off on that line
                raise
            yield Quarantined(source, error.line, None, error.message, "")


def _first(sample: str) -> str:
    return sample.lstrip("\ufeff \t\r\n").partition("\n")[0].strip()


# --- JSON lines ---------------------------------------------------------------------------


def _json_lines(path: Path, source: str) -> Iterator[Item]:
    for number, line in text.lines(path):
        if line.strip():
            yield _json_mail(line, source, number)


def _json_mail(line: str, source: str, number: int) -> Event | Quarantined:
    def bad(reason: str, record_id: str | None = None) -> Quarantined:
        return Quarantined(source, number, record_id, reason, text.shorten(line))

    try:
        record = json.loads(line)
    except (ValueError, RecursionError) as error:
        return bad(f"not JSON: {error}")
    if not isinstance(record, dict):
        return bad("not a JSON object")
    identity = _name(record.get("id"))
    if identity is None:
        return bad(NO_ID)
    refs = record.get("refs") or []
    if not isinstance(refs, list):
        return bad("refs is not a list", identity)
    parent = _name(record.get("parent")) or (_name(refs[-1]) if refs else None)
    return Event(
        kind=SEND,
        id=identity,
        member=_name(record.get("sender")),
        parents=(parent,) if parent else (),
        topics=_topics(record),
        ingest=text.int64(record.get("seq")),
        arrival=text.nanoseconds(record.get("arrived"), "s"),
        send_time=text.nanoseconds(record.get("date"), "s"),
        commit_time=text.nanoseconds(record.get("committed"), "s"),
        source=source,
        line=number,
    )


def _name(value: object) -> str | None:
    """Return a name as text; None for null, blank and anything that is no name."""
    if isinstance(value, str | int) and not isinstance(value, bool):
        return str(value).strip() or None
    return None


def _topics(record: dict[str, Any]) -> tuple[str, ...]:
    topic = _name(record.get("topic"))
    return (topic,) if topic else ()


# --- mbox ---------------------------------------------------------------------------------


def _mbox(path: Path, source: str) -> Iterator[Item]:
    """Collect the header lines of each mail; a mail begins at `From ` after a blank line."""
    headers: list[str] | None = None  # None: within a body, or before the first mail
    began, from_line, after_blank, stray = 0, "", True, False
    for number, line in text.lines(path):
        if after_blank and _FROM.match(line):
            if headers is not None:
                yield _mbox_mail(headers, from_line, source, began)
            headers, began, from_line, after_blank = [], number, line, False
            continue
        after_blank = not line
        if headers is None:
            if not began and line.strip() and not stray:
                stray = True
                reason = "text before the first mail (no line begins with 'From ' yet)"
                yield Quarantined(source, number, None, reason, text.shorten(line))
        elif not line:
            yield _mbox_mail(headers, from_line, source, began)
            headers = None
        elif len(headers) < MAX_HEADER_LINES:
            headers.append(line)
    if headers is not None:
        yield _mbox_mail(headers, from_line, source, began)


def _mbox_mail(lines: list[str], from_line: str, source: str, line: int) -> Event | Quarantined:
    headers = _unfold(lines)
    found = _MESSAGE_ID.findall(headers.get("message-id", ""))
    identity = found[0] if found else headers.get("message-id", "").strip()
    if not identity:
        shown = text.shorten("\n".join([from_line, *lines]))
        return Quarantined(source, line, None, NO_ID, shown)
    parents = _MESSAGE_ID.findall(headers.get("in-reply-to", ""))[:1]
    parents = parents or _MESSAGE_ID.findall(headers.get("references", ""))[-1:]
    lists = _MESSAGE_ID.findall(headers.get("list-id", ""))[-1:]
    return Event(
        kind=SEND,
        id=identity,
        member=_address(headers.get("from")),
        parents=tuple(parents),
        topics=tuple(lists),
        arrival=_arrival(headers, from_line),
        send_time=text.mail_time(headers["date"]) if "date" in headers else None,
        text=headers.get("subject"),
        source=source,
        line=line,
    )


def _unfold(lines: list[str]) -> dict[str, str]:
    """Return the first header of each name, in lower case, continuation lines joined."""
    headers: dict[str, str] = {}
    current: str | None = None
    for line in lines:
        if line[0] in " \t":
            if current is not None:
                headers[current] += " " + line.strip()
            continue
        match = _HEADER.match(line)
        current = match[1].lower() if match else None
        if match is None or current is None or current in headers:
            current = None
        else:
            headers[current] = match[2]
    return headers


def _address(header: str | None) -> str | None:
    if header is None:
        return None
    return email.utils.parseaddr(header)[1].lower() or header.strip() or None


def _arrival(headers: dict[str, str], from_line: str) -> int | None:
    _, semicolon, when = headers.get("received", "").rpartition(";")
    if semicolon and (received := text.mail_time(when)) is not None:
        return received
    match = _FROM_TIME.search(from_line)
    return text.mail_time(match[0]) if match else None
