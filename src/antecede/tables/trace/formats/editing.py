"""Reader of concurrent-editing traces: a JSON object with a list `txns` of changes.

Format of josephg/editing-traces: `parents` are positions in the list, from 0; `agent` is the
editor, `time` an ISO time by its clock, `patches` the change. The id is the position, the run is
the file name.

The file may be one line and larger than memory. Changes are decoded one at a time from a buffer of
at most `MAX_CHANGE` characters. Bad text up to the next start of a change is quarantined.

Positions are ids, so damaged changes are counted by their starts. A change follows its parents, so
a parent beyond the count shows how many changes are lost (`lost_changes`). A change whose parent is
the previous position confirms the count.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, cast

from antecede.errors import FormatError
from antecede.tables.trace import text
from antecede.tables.trace.formats.json_stream import Buffer
from antecede.tables.trace.identities import name_of
from antecede.tables.trace.reader import Detail, Item, ReadOptions
from antecede.tables.trace.schema import Event, Quarantined
from antecede.tables.trace.time_text import UNREADABLE_TIMES

MAX_CHANGE = 1 << 24
"""Limit of a change in characters."""
MAX_POSITION = 1 << 48

_FIRST_KEYS = ("parents", "numChildren", "agent", "time", "patches")
_KEY_OF_CHANGE = rf'"(?:{"|".join(_FIRST_KEYS)})"\s{{0,40}}:'
_KEYS = re.compile(rf'"({"|".join(_FIRST_KEYS)})"\s{{0,40}}:')
_FILE_START = re.compile(
    r'\{\s*"(?:kind"\s*:\s*"concurrent"|(?:startContent|endContent|txns)"\s*:)'
)
_LIST = re.compile(rf'"txns"\s{{0,40}}:\s{{0,40}}\[|\[(?=\s{{0,40}}\{{\s{{0,40}}{_KEY_OF_CHANGE})')
_END = re.compile(rf'\]\s{{0,40}}(?:\}}?\s{{0,40}}\Z|,\s{{0,40}}(?!{_KEY_OF_CHANGE})")')
_BLANK = re.compile(r"[\s,]*")
_DECODER = json.JSONDecoder()
_NEAR_END = 16  # errors of a truncated escape or literal are this close to the end
_OVERLAP = 160  # a match may span two blocks
_MIN_CHANGE = 16  # minimum characters of a change
_NO_LIMIT = 1 << 62


class EditingReader:
    """Reader of concurrent-editing traces."""

    name = "editing"
    uses: tuple[str, ...] = ()

    def sniff(self, path: Path, head: bytes) -> float:
        """Recognize the list of changes, or the keys before it."""
        sample = text.decode(head).lstrip("\ufeff \t\r\n")
        if not _FILE_START.match(sample):
            return 0.0
        return 0.95 if _LIST.search(sample) else 0.6 if len(head) >= text.HEAD_BYTES else 0.0

    def read(self, path: Path, options: ReadOptions) -> Iterator[Item]:
        """Yield every change."""
        if path.is_dir():
            raise FormatError("a folder; give the file of an editing trace", path=str(path))
        with text.open_bytes(path) as file:
            yield from _ChangeReader(path, file).read()


class _ChangeReader(Buffer):
    """Decoder of the changes of a file with a sliding buffer."""

    def __init__(self, path: Path, file: IO[bytes]) -> None:
        super().__init__(file)
        self.source = str(path)
        self.run = path.name.partition(".")[0] or path.name
        self.keep_from = _NO_LIMIT
        """Position from which the buffer must keep text, if before `position`."""
        self.passed_characters = 0
        self.start_pattern = _compile_start(*_FIRST_KEYS)
        """Pattern of the start of a change; its key is that of the first change."""
        self.last_keys: set[str] = set()
        self.index = 0
        self.is_index_uncertain = False
        """True if changes may be lost, so `index` may be too low."""
        self.lost_changes = 0
        self.unreadable_times = 0

    def read(self) -> Iterator[Item]:
        found = self._seek(_LIST)
        if found is None:
            reason = self.break_reason or 'no list "txns"'
            yield self._quarantine(reason, self.text[: text.MAX_RAW + 1], self.line)
            return
        self._move_to(found.end())
        self._skip_separators()
        while not self._is_list_end():
            if self.position == len(self.text):
                reason = self.break_reason or "the list of changes does not end"
                yield self._quarantine(reason, "", self.line)
                break
            yield self._read_change()
        if self.lost_changes:
            yield Detail("lost_changes", self.lost_changes)
        if self.unreadable_times:
            yield Detail(UNREADABLE_TIMES, self.unreadable_times)

    # --- the buffer -----------------------------------------------------------------------

    def read_more(self) -> bool:
        """Extend the buffer and keep text from `keep_from`; return False at the end."""
        is_kept, ahead = self.keep_from != _NO_LIMIT, max(self.position - self.keep_from, 0)
        self.position -= ahead
        has_more = super().read_more()
        self.keep_from = self.position if is_kept else _NO_LIMIT
        self.position += ahead
        return has_more

    def _seek(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """Move to the next match, or to the end."""
        while (match := pattern.search(self.text, self.position)) is None:
            self._move_to(max(self.position, len(self.text) - _OVERLAP))
            if not self.read_more():
                self._move_to(len(self.text))
                return None
        self._move_to(match.start())
        return match

    def _move_to(self, to: int) -> None:
        self.passed_characters += to - self.position
        self.advance(to)

    def _skip_separators(self) -> bool:
        """Skip blanks and commas; return whether there was a comma."""
        comma = False
        while True:
            match = cast("re.Match[str]", _BLANK.match(self.text, self.position))
            comma |= "," in match[0]
            self._move_to(match.end())
            if self.position < len(self.text) or not self.read_more():
                return comma

    def _matches_here(self, pattern: re.Pattern[str]) -> bool:
        while len(self.text) - self.position < _OVERLAP and self.read_more():
            pass
        return pattern.match(self.text, self.position) is not None

    def _is_list_end(self) -> bool:
        """Return whether the list ends here, not only at a stray bracket."""
        return self._matches_here(_END)

    # --- changes --------------------------------------------------------------------------

    def _read_change(self) -> Event | Quarantined:
        """Return the change or bad text here, and move to the next."""
        line, begins = self.line, self._matches_here(self.start_pattern)
        if begins:
            first = cast("re.Match[str]", self.start_pattern.match(self.text, self.position))
            self.start_pattern = _compile_start(first[1])
        raw = self.text[self.position : self.position + text.MAX_RAW + 1]
        self.keep_from, self.passed_characters = self.position, 0
        change, reason = self._decode()
        if not reason:
            own = raw[: self.passed_characters]
            comma = self._skip_separators()
            at_end = self.position == len(self.text) or self._is_list_end()
            if not (comma or at_end or self._matches_here(self.start_pattern)):
                reason = "expected a comma or the end of the list after this change"
            elif _has_changes(change):
                reason = "contains other changes: a bracket is missing"
        if reason:
            bad = self._quarantine(reason, raw, line)
            self._skip_damage(begins, raw)
        elif not isinstance(change, dict):
            bad = self._quarantine("not a JSON object", own, line)
            # A null counts as a change; a short value is more likely a fragment of a damaged one.
            self.index += change is None or self.passed_characters >= _MIN_CHANGE
            self.is_index_uncertain = True
        else:
            self.keep_from = _NO_LIMIT
            return self._make_event(change, own, line)
        self.keep_from = _NO_LIMIT
        return bad

    def _decode(self) -> tuple[object, str]:
        """Return (value, "") and move behind it, or (None, reason)."""
        while True:
            try:
                value, end = _DECODER.raw_decode(self.text, self.position)
            except (ValueError, RecursionError) as error:
                if self._is_final_error(error):
                    return None, f"invalid JSON: {getattr(error, 'msg', error)}"
                if not self.read_more():
                    return None, self.break_reason or "the file ends within a change"
                continue
            if end == len(self.text) and not isinstance(value, dict) and self.read_more():
                continue  # a number may continue
            self._move_to(end)
            return value, ""

    def _is_final_error(self, error: Exception) -> bool:
        """Return whether more text cannot resolve the error."""
        if len(self.text) - self.position >= MAX_CHANGE or not isinstance(
            error, json.JSONDecodeError
        ):
            return True
        unterminated = error.msg.startswith("Unterminated")
        return not unterminated and error.pos < len(self.text) - _NEAR_END

    def _skip_damage(self, is_start: bool, raw: str) -> None:
        """Move from bad text to the next start of a change; `is_start`: bad text starts a change.

        Bad text counts as one change unless it is too short, or is the rest of the last change
        after a stray bracket: it has only keys that the last change lacks.
        """
        self.line -= self.text.count("\n", self.keep_from, self.position)
        self.position, self.keep_from, self.passed_characters = self.keep_from, _NO_LIMIT, 0
        self._move_to(self.position + is_start)
        self._seek(self.start_pattern)
        keys = {*_KEYS.findall(raw[: self.passed_characters])}
        first = any(self.start_pattern.match(f'{{"{key}":') for key in keys)
        rest = bool(keys) and not first and not keys & self.last_keys
        self.index += self.passed_characters >= _MIN_CHANGE and not rest
        self.is_index_uncertain = True

    def _make_event(self, change: dict[str, Any], raw: str, line: int) -> Event | Quarantined:
        self.last_keys = {*change}
        parents, reason = _read_parents(change)
        self.is_index_uncertain |= bool(reason)
        last = max(parents, default=-1)
        if self.is_index_uncertain and last >= self.index:
            self.lost_changes += last + 1 - self.index
            self.index = last + 1
        elif last >= self.index:
            reason = f"parent is this change or a later one: {last}"
        index = self.index
        self.index += bool(change)
        if reason:
            return self._quarantine(reason, raw, line, index)
        if last == index - 1:
            self.is_index_uncertain = False
        when = change.get("time")
        sent = text.parse_iso_time(when) if isinstance(when, str) else None
        self.unreadable_times += sent is None and when not in (None, "")
        return Event(
            run=self.run,
            id=str(index),
            member=name_of(change.get("agent")),
            causes=tuple(str(parent) for parent in dict.fromkeys(parents)),
            send_time=sent,
            text=_patches_to_text(change.get("patches")),
            source=self.source,
            line=line,
        )

    def _quarantine(
        self, reason: str, raw: str, line: int, index: int | None = None
    ) -> Quarantined:
        position = str(self.index if index is None else index)
        return Quarantined(self.source, line, position, reason, text.shorten(raw))


@functools.cache
def _compile_start(*keys: str) -> re.Pattern[str]:
    return re.compile(rf'\{{\s{{0,40}}"({"|".join(keys)})"\s{{0,40}}:')


def _read_parents(change: dict[str, Any]) -> tuple[list[int], str]:
    parents = change.get("parents")
    if not isinstance(parents, list):
        return [], "no list of parents (single-editor traces have none)"
    wrong = next((p for p in parents if type(p) is not int or not 0 <= p < MAX_POSITION), None)
    if wrong is not None:
        return [], f"invalid parent: {str(wrong)[:60]}; expected a position in the list"
    return parents, ""


def _has_changes(change: object) -> bool:
    patches = change.get("patches") if isinstance(change, dict) else None
    return isinstance(patches, list) and any(isinstance(patch, dict) for patch in patches)


def _patches_to_text(patches: object) -> str | None:
    return None if patches is None else json.dumps(patches, ensure_ascii=False)
