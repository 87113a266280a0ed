"""Header lines of mail: unfolding, encoded words, message ids (RFC 5322, RFC 2047).

Archives hold ids in many spellings: encoded, folded or padded within `<>`, in quotes, without
brackets. All spellings of one id give one name here. Old programs put addresses, quotations and
comments beside the id of a reply (`Message from Ann <ann@example.org> of "Mon ..." <id>`).
"""

from __future__ import annotations

import base64
import binascii
import html
import quopri
import re
from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple

from antecede.tables.trace.formats.mail_dates import strip_comments

REPEATABLE = ("in-reply-to", "references")
"""Headers of which all lines count; of others the first counts."""

_HEADER = re.compile(r"([!-9;-~]+)[ \t]*:[ \t]*(.*)")
_ENCODED = re.compile(r"=\?([^?\s]{1,80})\?([bBqQ])\?([^?]{0,998})\?=")
_BETWEEN_ENCODED = re.compile(r"\?=\s+=\?")
_TOKEN = re.compile(r"<([^<>]*)>|([^\s<>\"]+)")
_QUOTATION = re.compile(r'"[^"]*"')
_QUOTED_LOCAL = re.compile(r'"([^"\\\s]+)"@')
_AROUND = ",;:()[]{}'\\"
"""Punctuation around ids without brackets."""
_LIKE_AN_ID = re.compile(r"[^\s<>@]+@[^\s<>@]+")


def unfold_headers(lines: Iterable[str]) -> dict[str, str]:
    """Return headers by name in lower case: continuation lines joined, encoded words decoded."""
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


class MessageId(NamedTuple):
    """The id in a Message-ID header."""

    name: str
    is_bare: bool
    """It stands without brackets."""


def parse_message_id(header: str) -> MessageId | None:
    """Return the id of a Message-ID header; None if it is blank."""
    plain = strip_comments(header)
    for part in (plain, header):
        if found := next((name for name, is_bare in _tokens(part) if not is_bare), None):
            return MessageId(found, False)
    name = plain.strip(' \t<>"') or header.strip()
    return MessageId(name, True) if name else None


class ReplyParser:
    """Parser of reply headers (In-Reply-To, References) of one archive."""

    def __init__(self, ids: Collection[str], senders: Collection[str], *, has_bare: bool) -> None:
        """Take ids and senders' addresses of the archive; `has_bare`: some ids lack brackets."""
        self.ids = ids
        self.senders = senders
        self.has_bare = has_bare

    def parse(self, header: str, addresses: Collection[str] = ()) -> list[str]:
        """Return the ids in a header, each once, in its order.

        `addresses`, and those of senders, are no ids, unless a mail of the archive has that id.
        Ids in quotations and comments count only without any other. Bare ids count if the archive
        has them, or has bare ids at all and nothing but ids stands in the header.
        """
        plain = strip_comments(header)
        outside = _QUOTATION.sub(lambda words: " " if "<" in words[0] else words[0], plain)
        for part in (outside, plain):
            if found := self._find(part, addresses):
                return found
        return [name for name in self._find(header, addresses) if name in self.ids]

    def _find(self, header: str, addresses: Collection[str]) -> list[str]:
        tokens = list(_tokens(header))
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


def _tokens(header: str) -> Iterator[tuple[str, bool]]:
    """Yield ids in `<>`, without white space and quotes, and words outside (True)."""
    if "&lt;" in header:
        header = html.unescape(header)
    for inner, word in _TOKEN.findall(header):
        if word:
            if word := word.strip(_AROUND).removeprefix("mid:"):
                yield word, True
            continue
        name = _QUOTED_LOCAL.sub(r"\1@", "".join(inner.split())).strip("\\")
        if name and ("@" in name or len(inner.split()) == 1):
            yield name, False


def _decode_words(value: str) -> str:
    """Return a header with its encoded words decoded; undecodable ones stay as they are."""
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
