"""Times in headers of mail (RFC 5322, section 3.3, and its obsolete forms, section 4.3).

Offsets (`+0200`, `+02:00`, `+02`) and the zone names of RFC 5322 (UT, GMT, Z, EST to PDT) are
known, besides UTC. Every other name (JST, CET, BST, MEZ, EST5EDT) is ambiguous or local, so such
a time stays unknown and its zone is counted.
"""

from __future__ import annotations

import datetime
import email.utils
import re
from typing import NamedTuple

from antecede.tables.trace import text

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
    """A parsed time."""

    ns: int | None
    """Nanoseconds since 1970, UTC; None if unreadable or in an unknown zone."""
    zone: str = ""
    """The unknown zone as written."""
    has_zone: bool = True


def parse_mail_date(written: str) -> MailDate:
    """Return the time of a Date or Received header. Without a zone it is taken as UTC."""
    plain = strip_comments(written).strip()
    if _ISO.match(plain):
        ns = text.iso_time(plain)
        return MailDate(ns, has_zone=re.search(r"Z$|[+-]\d{2}:?\d{2}$", plain) is not None)
    clock = _CLOCK.search(plain)
    if clock is None:
        return MailDate(None)
    end = clock.end() if clock[3] is None else clock.start(3) - 1
    date, zone = plain[:end], plain[clock.end() :].strip()
    if len(_NUMBER.findall(plain, 0, clock.start())) < 2:
        # `date` and ctime put the year behind the clock, with the zone before or behind the year.
        if year := _YEAR_FIRST.match(zone):
            date, zone = f"{date} {year[1]}", zone[year.end() :].strip()
        elif year := _YEAR_LAST.search(f" {zone}"):
            date, zone = f"{date} {year[1]}", zone[: -len(year[1])].strip()
    ns = _to_nanoseconds(date, clock)
    if ns is None or not zone:
        return MailDate(ns, has_zone=bool(zone))
    offset_s = _zone_offset(zone)
    if offset_s is None:
        return MailDate(None, zone=zone)
    return MailDate(text.int64(ns - offset_s * 10**9))


def strip_comments(header: str) -> str:
    """Return a header without its comments: text in parentheses, which may be nested.

    Parentheses within `<>` or quotes, and those without a partner, are no comments.
    """
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


def _to_nanoseconds(date: str, clock: re.Match[str]) -> int | None:
    """Return a date without a zone as if it were UTC."""
    below_second = int((clock[3] or "")[:9].ljust(9, "0"))
    if clock[2] is not None and int(clock[2]) == _LEAP_SECOND:  # the second after :59, as in POSIX
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
    return text.since_epoch(when, below_second)


def _zone_offset(zone: str) -> int | None:
    """Return the seconds east of UTC; None for an unknown zone.

    Text after a numeric offset is its name (`+0200 CEST`), unless it is another offset. A name and
    an offset must agree (`EST -0500`).
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
    other = _zone_offset(rest)
    if other is not None or not offset or re.match(r"[+-]?\d", rest):
        return found if other == found else None
    return found
