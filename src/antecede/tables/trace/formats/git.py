"""Reader of commits: a git repository (`git log`) or a table of tab-separated values.

The header of the table has `commit`, `parents` (separated by blanks), and optionally `author_time`,
`commit_time` (seconds since 1970) and `author_id`. A repository gives the commits of all
references, parents first; the author's address is the member. Programs in the configuration of the
repository are not executed.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from antecede.errors import FormatError, InputError, SetupError
from antecede.tables.trace import text
from antecede.tables.trace.reader import NO_ID, Detail, Item, ReadOptions, quarantine_break
from antecede.tables.trace.schema import Event, Quarantined
from antecede.tables.trace.time_text import UNREADABLE_TIMES

MAX_COLUMNS = 4096
COUNT_TIMEOUT_S = 10.0
MAX_PARENTS = 1 << 16
_FIELDS = ("commit", "parents", "author_time", "commit_time", "author_id", "subject")
_CONFIGURE = ("--no-replace-objects", "-c", "log.showSignature=false", "-c", "core.fsmonitor=false")
_LOG = ("log", "--all", "--topo-order", "--reverse", "--no-color", "--no-notes", "--no-mailmap")
_FORMAT = "--format=%H%x09%P%x09%at%x09%ct%x09%ae%x09%s"


class GitReader:
    """Reader of git repositories and tables of commits."""

    name = "git"
    uses: tuple[str, ...] = ()

    def sniff(self, path: Path, head: bytes) -> float:
        """Recognize a repository, or the header of a table."""
        if path.is_dir():
            return 1.0 if is_repository(path) else 0.0
        first = text.decode(head).lstrip("\ufeff").partition("\n")[0].rstrip("\r").split("\t")
        return 1.0 if {"commit", "parents"} <= set(first) else 0.0

    def read(self, path: Path, options: ReadOptions) -> Iterator[Item]:
        """Yield every commit."""
        counts: Counter[str] = Counter()
        found = _read_repository(path, counts) if path.is_dir() else _read_table(path, counts)
        yield from quarantine_break(found, path)
        if counts[UNREADABLE_TIMES]:
            yield Detail(UNREADABLE_TIMES, counts[UNREADABLE_TIMES])


def is_repository(path: Path) -> bool:
    """Return whether `path` is the top folder of a work tree or a bare repository."""
    return (path / ".git").exists() or ((path / "HEAD").is_file() and (path / "objects").is_dir())


def count_commits(path: Path) -> int | None:
    """Return the number of commits; None if git fails or exceeds `COUNT_TIMEOUT_S`."""
    command = ["git", "-C", str(path), *_CONFIGURE, "rev-list", "--all", "--count"]
    try:
        done = subprocess.run(
            command,
            env=_make_environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=COUNT_TIMEOUT_S,
            check=True,
        )
        return int(done.stdout)
    except (OSError, subprocess.SubprocessError, ValueError):
        return None


def _read_table(path: Path, counts: Counter[str]) -> Iterator[Item]:
    names: list[str] | None = None
    for number, line in text.read_lines(path):
        # Bounded by the header: a line of tabs would give millions of cells.
        cells = line.split("\t", MAX_COLUMNS if names is None else len(names))
        if names is None:
            if len(cells) > MAX_COLUMNS:
                message = f"the first line has more than {MAX_COLUMNS:,} columns"
                raise FormatError(message, path=str(path), line=number)
            if not {"commit", "parents"} <= set(cells):
                message = "the first line must name the columns commit and parents"
                raise FormatError(message, path=str(path), line=number)
            names = cells
        elif line.strip():
            yield _make_event(names, cells, str(path), number, counts)


def _make_environment() -> dict[str, str]:
    environment = {**os.environ, "GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0"}
    for name in ("GIT_DIR", "GIT_WORK_TREE"):  # git sets them for hooks
        environment.pop(name, None)
    return environment


def _read_repository(path: Path, counts: Counter[str]) -> Iterator[Item]:
    command = ["git", "-C", str(path), *_CONFIGURE, *_LOG, "--encoding=UTF-8", _FORMAT, "--"]
    with tempfile.TemporaryFile() as errors:  # an unread pipe would block git
        try:
            git = subprocess.Popen(
                command,
                env=_make_environment(),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
            )
        except OSError as error:
            message = "git is not installed; install it to read a repository"
            raise SetupError(message) from error
        with git:
            assert git.stdout is not None
            try:
                lines = iter(partial(text.read_bounded_line, git.stdout), b"")
                for number, raw in enumerate(lines, 1):
                    cells = text.decode(raw).rstrip("\n").split("\t", len(_FIELDS) - 1)
                    yield _make_event(list(_FIELDS), cells, str(path), number, counts)
                git.wait()
            finally:
                git.kill()  # if the caller stops early
        errors.seek(0)
        if git.returncode:
            message = text.shorten(text.decode(errors.read()).strip())
            raise InputError(f"git log failed: {message}", path=str(path))
    if (path / ".git" / "shallow").exists() or (path / "shallow").exists():
        yield Detail("shallow", 1)


def _make_event(
    names: list[str], cells: list[str], source: str, line: int, counts: Counter[str]
) -> Event | Quarantined:
    record = dict(zip(names, cells, strict=False))
    identity = record.get("commit", "").strip()
    raw = text.shorten("\t".join(cell[: text.MAX_RAW + 1] for cell in cells[: text.MAX_RAW]))
    if not identity:
        return Quarantined(source, line, None, NO_ID, raw)
    if "parents" not in record:
        reason = f"{len(cells)} cells, but the first line has {len(names)} columns"
        return Quarantined(source, line, identity, reason, raw)
    parents = record["parents"].split(None, MAX_PARENTS)
    if len(parents) > MAX_PARENTS:
        reason = f"too many parents; at most {MAX_PARENTS:,} are read"
        return Quarantined(source, line, text.shorten(identity), reason, raw)
    times = {name: record.get(name, "").strip() for name in ("author_time", "commit_time")}
    found = {name: text.parse_nanoseconds(written, "s") for name, written in times.items()}
    counts[UNREADABLE_TIMES] += sum(bool(times[name]) and found[name] is None for name in times)
    return Event(
        id=identity,
        member=record.get("author_id") or None,
        causes=tuple(parents),
        author_time=found["author_time"],
        commit_time=found["commit_time"],
        text=record.get("subject") or None,
        source=source,
        line=line,
    )
