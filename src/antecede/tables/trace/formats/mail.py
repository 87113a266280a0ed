"""Reader of mail: mbox files and archives as JSON lines.

Causes are the ids of `In-Reply-To`, else the last of `References`. If the archive has none of
these, the nearest mail of `References` in the archive is a cause, too. `send_time` is the Date,
which needs a zone of RFC 5322. `arrival` is the topmost Received header, else the time of the
`From ` line in UTC.

JSON lines have one object per mail: `id`, `parent` (else the last of `refs`), `sender`, `topic`;
`date`, `arrived` and `committed` in seconds since 1970; and `seq`, the position in the archive.

Mailboxes are read twice, with all ids and senders in memory.
"""

from __future__ import annotations

import contextlib
import email.utils
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from antecede.errors import InputError
from antecede.tables.trace import text
from antecede.tables.trace.causes import BLANK, UNREAD_REPLIES
from antecede.tables.trace.formats.mail_headers import (
    REPEATABLE,
    ReplyParser,
    parse_mail_date,
    parse_message_id,
    unfold_headers,
)
from antecede.tables.trace.reader import NO_ID, Detail, Item, ReadOptions, quarantine_break
from antecede.tables.trace.schema import SEND, Event, Quarantined
from antecede.tables.trace.time_text import UNKNOWN_ZONE, UNREADABLE_TIMES

MAX_HEADER_LINES = 10_000
MAX_ZONES = 20
"""Unknown zones of a file that are counted by name."""
MAX_ADDRESSES = 10_000
NO_ZONE = "none given"
NEAREST_ANCESTORS = "nearest_ancestors"
"""Name of a detail: mails linked to an ancestor, because the archive lacks the answered mail."""

_FROM = re.compile(r"From \S.*\d{1,2}:\d{2}.*\d{4}|From \S+@\S+|From MAILER-DAEMON")
_FROM_TIME = re.compile(r"\w{3},? +\w{3} +\d{1,2} .*?\d{2}:\d{2}.*?(?= remote from |$)")
_JSON_TIMES = (("arrival", "arrived"), ("send_time", "date"), ("commit_time", "committed"))
_KEYS = {"id", "parent", "refs", "sender", "topic", "date", "arrived", "committed"}


class MailReader:
    """Reader of mbox files and JSON lines of mails."""

    name = "mail"
    uses: tuple[str, ...] = ()

    def __init__(self, reply_parser: ReplyParser | None = None) -> None:
        self.reply_parser = reply_parser

    def sniff(self, path: Path, head: bytes) -> float:
        """Recognize the first mail."""
        first = _get_first_line(text.decode(head))
        if first.startswith("{"):
            record = text.parse_json_object(first)
            keys = {*record} if isinstance(record, dict) else set()
            return 0.9 if {"id", "sender", "parent"} <= keys and len(_KEYS & keys) > 4 else 0.0
        return 0.9 if _FROM.match(first) else 0.0

    def create_for_files(self, paths: Sequence[Path]) -> MailReader:
        """Return a reader for the files of one archive; mails may answer mails of other files."""
        return MailReader(_survey([path for path in paths if not _is_json(path)]))

    def read(self, path: Path, options: ReadOptions) -> Iterator[Item]:
        """Yield every mail of the file."""
        counts: Counter[str] = Counter()
        source = str(path)
        found: Iterator[Item]
        if _is_json(path):
            found = (
                _parse_json_mail(line, source, number, counts)
                for number, line in text.read_lines(path)
                if line.strip()
            )
        else:
            found = _Mailbox(source, self.reply_parser or _survey([path]), counts).read(path)
        yield from quarantine_break(found, path)
        yield from (Detail(name, count) for name, count in counts.items() if count)


def _is_json(path: Path) -> bool:
    return _get_first_line(text.decode(text.read_bytes(path, text.HEAD_BYTES)[0])).startswith("{")


def _get_first_line(sample: str) -> str:
    return sample.lstrip("\ufeff \t\r\n").partition("\n")[0].strip()


# --- JSON lines ---------------------------------------------------------------------------


def _parse_json_mail(
    line: str, source: str, number: int, counts: Counter[str]
) -> Event | Quarantined:
    def bad(reason: str, record_id: str | None = None) -> Quarantined:
        return Quarantined(source, number, record_id, reason, text.shorten(line))

    record = text.parse_json_object(line)
    if isinstance(record, str):
        return bad(record)
    identity = _value_to_name(record.get("id"))
    if identity is None:
        return bad(NO_ID)
    refs = record.get("refs") or []
    if not isinstance(refs, list):
        return bad("refs is not a list", identity)
    parent = _value_to_name(record.get("parent")) or (_value_to_name(refs[-1]) if refs else None)
    times: dict[str, Any] = {
        name: text.parse_nanoseconds(record.get(key), "s") for name, key in _JSON_TIMES
    }
    counts[UNREADABLE_TIMES] += sum(
        times[name] is None and record.get(key) not in (None, "") for name, key in _JSON_TIMES
    )
    return Event(
        kind=SEND,
        id=identity,
        member=_value_to_name(record.get("sender")),
        causes=(parent,) if parent else (),
        topics=(topic,) if (topic := _value_to_name(record.get("topic"))) else (),
        ingest=text.parse_int64(record.get("seq")),
        source=source,
        line=number,
        **times,
    )


def _value_to_name(value: object) -> str | None:
    """Return text or a whole number as a name; None for blanks and other values."""
    if isinstance(value, str | int) and not isinstance(value, bool):
        return str(value).strip() or None
    return None


# --- mbox ---------------------------------------------------------------------------------


class _Mail(NamedTuple):
    headers: list[str]
    from_line: str
    line: int


def _read_mails(path: Path) -> Iterator[_Mail | Quarantined]:
    """Yield the mails of an mbox; a mail begins at `From ` after a blank line."""
    mail: _Mail | None = None  # None: within a body, or before the first mail
    began, after_blank, stray = False, True, False
    for number, line in text.read_lines(path):
        if after_blank and _FROM.match(line):
            if mail is not None:
                yield mail
            mail, began, after_blank = _Mail([], line, number), True, False
            continue
        after_blank = not line
        if mail is None:
            if not began and line.strip() and not stray:
                stray = True
                reason = "text before the first mail; expected a line that begins with 'From '"
                yield Quarantined(str(path), number, None, reason, text.shorten(line))
        elif not line:
            yield mail
            mail = None
        elif len(mail.headers) < MAX_HEADER_LINES:
            mail.headers.append(line)
    if mail is not None:
        yield mail


def _survey(paths: Sequence[Path]) -> ReplyParser:
    ids: set[str] = set()
    senders: set[str] = set()
    has_bare = False
    for path in paths:
        with contextlib.suppress(InputError):  # reading the file reports the error
            for mail in _read_mails(path):
                if isinstance(mail, Quarantined):
                    continue
                headers = unfold_headers(mail.headers)
                if found := parse_message_id(headers.get("message-id", "")):
                    ids.add(found.name)
                    has_bare |= found.is_bare
                if sender := _parse_address(headers.get("from")):
                    senders.add(sender)
    return ReplyParser(ids, senders, has_bare=has_bare)


class _Mailbox:
    def __init__(self, source: str, reply_parser: ReplyParser, counts: Counter[str]) -> None:
        self.source = source
        self.reply_parser = reply_parser
        self.counts = counts
        self.zones: set[str] = set()

    def read(self, path: Path) -> Iterator[Item]:
        for mail in _read_mails(path):
            yield mail if isinstance(mail, Quarantined) else self._make_event(mail)

    def _make_event(self, mail: _Mail) -> Event | Quarantined:
        headers = unfold_headers(mail.headers)
        identity = parse_message_id(headers.get("message-id", ""))
        if identity is None:
            shown = text.shorten("\n".join([mail.from_line, *mail.headers]))
            return Quarantined(self.source, mail.line, None, NO_ID, shown)
        topic = parse_message_id(headers.get("list-id", ""))
        return Event(
            kind=SEND,
            id=identity.name,
            member=_parse_address(headers.get("from")),
            causes=self._find_causes(headers, identity.name),
            topics=(topic.name,) if topic is not None and not topic.is_bare else (),
            arrival=self._find_arrival(headers, mail.from_line),
            send_time=self._parse_time(headers.get("date", "")),
            text=headers.get("subject"),
            source=self.source,
            line=mail.line,
        )

    def _find_causes(self, headers: dict[str, str], identity: str) -> tuple[str, ...]:
        answered, ancestors = (self._parse_ids(headers, name) for name in REPEATABLE)
        causes = answered or ancestors[-1:]
        known = self.reply_parser.ids
        if causes and not any(one in known for one in causes):
            there = (one for one in reversed(ancestors) if one in known and one != identity)
            if nearest := next(there, None):
                self.counts[NEAREST_ANCESTORS] += 1
                causes = [*causes, nearest]
        return tuple(causes)

    def _parse_ids(self, headers: dict[str, str], name: str) -> list[str]:
        header = headers.get(name)
        if header is None:
            return []
        if not header.strip(" \t<>"):
            self.counts[BLANK] += 1
            return []
        found = self.reply_parser.parse(header)
        if any(one not in self.reply_parser.ids for one in found):
            found = self.reply_parser.parse(header, _collect_addresses(headers))
        self.counts[UNREAD_REPLIES] += not found
        return found

    def _find_arrival(self, headers: dict[str, str], from_line: str) -> int | None:
        _, semicolon, when = headers.get("received", "").rpartition(";")
        if semicolon and (received := self._parse_time(when)) is not None:
            return received
        match = _FROM_TIME.search(from_line)
        return self._parse_time(match[0], is_utc=True) if match else None

    def _parse_time(self, written: str, *, is_utc: bool = False) -> int | None:
        if not written.strip():
            return None
        date = parse_mail_date(written)
        zone = date.zone if date.has_zone or is_utc else NO_ZONE
        if date.ns is None and not date.zone:
            self.counts[UNREADABLE_TIMES] += 1
        elif zone:
            zone = text.shorten(zone)[:40]
            if zone not in self.zones and len(self.zones) >= MAX_ZONES:
                zone = "others"
            self.zones.add(zone)
            self.counts[UNKNOWN_ZONE + zone] += 1
            return None
        return date.ns


def _parse_address(header: str | None) -> str | None:
    if header is None:
        return None
    return email.utils.parseaddr(header)[1].lower() or header.strip() or None


def _collect_addresses(headers: dict[str, str]) -> set[str]:
    named = [headers.get(name, "")[:MAX_ADDRESSES] for name in ("from", "to", "cc", "reply-to")]
    return {address.lower() for _, address in email.utils.getaddresses(named) if address}
