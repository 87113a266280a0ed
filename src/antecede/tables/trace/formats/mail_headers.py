"""Parsers of mail headers: unfolding, encoded words, message ids, times (RFC 5322, RFC 2047).

Archives write ids encoded, folded, padded, quoted, or without brackets; all forms give one id. Old
programs put addresses, quotations and comments beside the id of a reply (`Message from Ann
<ann@example.org> of "Mon ..." <id>`).

Times need an offset (`+0200`, `+02:00`, `+02`) or a zone: UT, UTC, GMT, Z, EST to PDT. Other zones
(JST, CET, BST) are ambiguous or local: the time is null and the zone is counted.
"""

from __future__ import annotations

import base64
import binascii
import datetime
import email.utils
import html
import quopri
import re
from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple

from antecede.tables.trace import text

REPEATABLE = ("in-reply-to", "references")
"""Headers that may have several lines; of others only the first counts."""

_HEADER = re.compile(r"([!-9;-~]+)[ \t]*:[ \t]*(.*)")
_ENCODED = re.compile(r"=\?([^?\s]{1,80})\?([bBqQ])\?([^?]{0,998})\?=")
_BETWEEN_ENCODED = re.compile(r"\?=\s+=\?")
_TOKEN = re.compile(r"<([^<>]*)>|([^\s<>\"]+)")
_QUOTATION = re.compile(r'"[^"]*"')
_QUOTED_LOCAL = re.compile(r'"([^"\\\s]+)"@')
_PUNCTUATION = ",;:()[]{}'\\"
"""Punctuation around ids without brackets."""
_LIKE_AN_ID = re.compile(r"[^\s<>@]+@[^\s<>@]+")


def unfold_headers(lines: Iterable[str]) -> dict[str, str]:
    """Return the decoded headers by lower-case name."""
    headers: dict[str, str] = {}
    current: str | None = None
    for line in lines:
        if line[0] in " \t":
            if current is not None:
                headers[current] += " " + line.strip()
            continue
        match = _HEADER.match(line)
        current = match[1].lower() if match else None
        if match is None or current is None:
            continue
        if current not in headers:
            headers[current] = match[2]
        elif current in REPEATABLE:
            headers[current] += " " + match[2]
        else:
            current = None
    return {name: _decode_words(value) for name, value in headers.items()}


class ParsedMessageId(NamedTuple):
    """Id in a Message-ID header."""

    name: str
    is_bare: bool
    """True if the id has no brackets."""


def parse_message_id(header: str) -> ParsedMessageId | None:
    """Return the id of a Message-ID header; None if it is blank."""
    plain = strip_comments(header)
    for part in (plain, header):
        if found := next((name for name, is_bare in _split_tokens(part) if not is_bare), None):
            return ParsedMessageId(found, False)
    name = plain.strip(' \t<>"') or header.strip()
    return ParsedMessageId(name, True) if name else None


class ReplyParser:
    """Parser of reply headers (In-Reply-To, References) of one archive."""

    def __init__(self, ids: Collection[str], senders: Collection[str], *, has_bare: bool) -> None:
        self.ids = ids
        self.senders = senders
        self.has_bare = has_bare

    def parse(self, header: str, addresses: Collection[str] = ()) -> list[str]:
        """Return the distinct ids in a header, in order.

        `addresses` and senders are ids only if a mail has that id. Ids in quotations and comments
        count only if there is no other. Bare ids count if the archive has them, or if it has bare
        ids at all and the header contains only ids.
        """
        plain = strip_comments(header)
        outside = _QUOTATION.sub(lambda words: " " if "<" in words[0] else words[0], plain)
        for part in (outside, plain):
            if found := self._find_ids(part, addresses):
                return found
        return [name for name in self._find_ids(header, addresses) if name in self.ids]

    def _find_ids(self, header: str, addresses: Collection[str]) -> list[str]:
        tokens = list(_split_tokens(header))
        words = [name for name, is_bare in tokens if is_bare]
        all_known = all(word in self.ids for word in words)
        all_ids = self.has_bare and all(map(_LIKE_AN_ID.fullmatch, words))
        found: dict[str, None] = {}
        for name, is_bare in tokens:
            if name in self.ids:
                accepted = not is_bare or all_known or "@" in name
            else:
                is_address = name.lower() in addresses or name.lower() in self.senders
                accepted = not is_address and (not is_bare or all_ids)
            if accepted:
                found[name] = None
        return list(found)


def _split_tokens(header: str) -> Iterator[tuple[str, bool]]:
    """Yield (id in `<>`, False) without white space and quotes, and (other word, True)."""
    if "&lt;" in header:
        header = html.unescape(header)
    for inner, word in _TOKEN.findall(header):
        if word:
            if word := word.strip(_PUNCTUATION).removeprefix("mid:"):
                yield word, True
            continue
        name = _QUOTED_LOCAL.sub(r"\1@", "".join(inner.split())).strip("\\")
        if name and ("@" in name or len(inner.split()) == 1):
            yield name, False


def _decode_words(value: str) -> str:
    if "=?" not in value:
        return value
    return _ENCODED.sub(_decode_word, _BETWEEN_ENCODED.sub("?==?", value))


def _decode_word(word: re.Match[str]) -> str:
    charset, encoding, encoded = word.groups()
    charset = charset.partition("*")[0]  # RFC 2231 appends a language
    try:
        raw = encoded.encode("ascii")
        if encoding in "bB":
            decoded = base64.b64decode(raw + b"=" * (-len(raw) % 4), validate=True)
        else:
            decoded = quopri.decodestring(raw, header=True)
        return decoded.decode(charset)
    except (LookupError, UnicodeError, binascii.Error):
        return word[0]


# --- times: RFC 5322, sections 3.3 and 4.3 --------------------------------------------------------

_NAMES = {"UT": 0, "UTC": 0, "GMT": 0, "Z": 0, "EST": -5, "EDT": -4, "CST": -6, "CDT": -5}
_NAMES |= {"MST": -7, "MDT": -6, "PST": -8, "PDT": -7}
_MAX_OFFSET_S = 14 * 3600
_CLOCK = re.compile(r"\d{1,2}([:.])\d{2}(?:\1(\d{2})(?:[.,](\d+))?)?(?![:\d])")
_NUMBER = re.compile(r"\d+")
_OFFSET = re.compile(r"([+-])(\d{2}):?(\d{2})?")
_YEAR_FIRST = re.compile(r"(\d{4})(?!\S)")
_YEAR_LAST = re.compile(r"\s(\d{4})$")
_ISO = re.compile(r"\d{4}-\d{2}-\d{2}[T ]")
_LEAP_SECOND = 60


class MailDate(NamedTuple):
    """Parsed time of a header."""

    ns: int | None
    """Time since 1970 in UTC, ns (None: unreadable or in an unknown zone)."""
    zone: str = ""
    """Unknown zone as written."""
    has_zone: bool = True


def parse_mail_date(written: str) -> MailDate:
    """Return the time of a Date or Received header (no zone: UTC)."""
    plain = strip_comments(written).strip()
    if _ISO.match(plain):
        ns = text.parse_iso_time(plain)
        return MailDate(ns, has_zone=re.search(r"Z$|[+-]\d{2}:?\d{2}$", plain) is not None)
    clock = _CLOCK.search(plain)
    if clock is None:
        return MailDate(None)
    end = clock.end() if clock[3] is None else clock.start(3) - 1
    date, zone = plain[:end], plain[clock.end() :].strip()
    if len(_NUMBER.findall(plain, 0, clock.start())) < 2:
        # `date` and ctime write the year after the clock, and the zone before or after the year.
        if year := _YEAR_FIRST.match(zone):
            date, zone = f"{date} {year[1]}", zone[year.end() :].strip()
        elif year := _YEAR_LAST.search(f" {zone}"):
            date, zone = f"{date} {year[1]}", zone[: -len(year[1])].strip()
    ns = _date_to_nanoseconds(date, clock)
    if ns is None or not zone:
        return MailDate(ns, has_zone=bool(zone))
    offset_s = _parse_zone(zone)
    if offset_s is None:
        return MailDate(None, zone=zone)
    return MailDate(text.parse_int64(ns - offset_s * 10**9))


def strip_comments(header: str) -> str:
    """Return a header without comments in parentheses, except within `<>` or quotes."""
    if "(" not in header:
        return header
    opened: list[int] = []
    cut: list[tuple[int, int]] = []
    last = {'"': header.rfind('"'), ">": header.rfind(">")}
    closing, skip = "", False
    for at, character in enumerate(header):
        if skip or character == "\\":
            skip = not skip
        elif closing:
            closing = "" if character == closing else closing
        elif character in '<"' and not opened:
            end = ">" if character == "<" else '"'
            closing = end if last[end] > at else ""
        elif character == "(":
            opened.append(at)
        elif character == ")" and opened:
            first = opened.pop()
            while cut and cut[-1][0] > first:
                cut.pop()
            cut.append((first, at + 1))
    kept, end_of_last = [], 0
    for first, end_of_cut in cut:
        kept.append(header[end_of_last:first])
        end_of_last = end_of_cut
    return " ".join([*kept, header[end_of_last:]])


def _date_to_nanoseconds(date: str, clock: re.Match[str]) -> int | None:
    below_second = int((clock[3] or "")[:9].ljust(9, "0"))
    if clock[2] is not None and int(clock[2]) == _LEAP_SECOND:  # one second after :59 (POSIX)
        date = date[: clock.start(2)] + "59" + date[clock.end(2) :]
        below_second += 10**9
    try:
        parsed = email.utils.parsedate_tz(f"{date} +0000")
        if parsed is None:
            return None
        year, month, day, hour, minute, second = parsed[:6]
        year += 1900 if 100 <= year < 1000 else 0  # RFC 5322: three digits count from 1900
        when = datetime.datetime(year, month, day, hour, minute, second)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    return text.datetime_to_nanoseconds(when, below_second)


def _parse_zone(zone: str) -> int | None:
    """Return the seconds east of UTC; None for an unknown zone.

    Text after an offset is its name (`+0200 CEST`). A second offset must agree (`EST -0500`).
    """
    first, _, rest = zone.partition(" ")
    rest = rest.strip()
    offset = _OFFSET.fullmatch(first)
    if offset:
        seconds = (int(offset[2]) * 60 + int(offset[3] or 0)) * 60
        found: int | None = -seconds if offset[1] == "-" else seconds
        if seconds > _MAX_OFFSET_S or int(offset[3] or 0) > 59:
            found = None
    else:
        hours = _NAMES.get(first.upper().rstrip("."))
        found = None if hours is None else hours * 3600
    if found is None or not rest:
        return found
    other = _parse_zone(rest)
    if other is not None or not offset or re.match(r"[+-]?\d", rest):
        return found if other == found else None
    return found
