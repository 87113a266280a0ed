"""Result store of a study: a folder of Parquet files that are written atomically.

Theory of operation
-------------------
    DIR/results/part-000012.parquet   outcomes in order of arrival
    DIR/results/results.parquet       all outcomes, once the study is complete
    DIR/earlier/earlier.parquet       results of the same code outside this grid
    DIR/.lock                         locked while a study writes here

The driver writes a part under another name, flushes it and renames it, so a kill loses no finished
part. Rows have the digests of their run and of the code. A run is done if rows with its digest and
the present code exist (`any_code`: with any code). The rows of a digest are in one file. After a
kill between the renames of `finish` two files may have them, and the first one counts. Failures are
not stored, so the next start tries them again.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.compute
import pyarrow.parquet

from antecede.errors import InputError
from antecede.lab.reproductions.framework.runs import Run, canonical_json

pa: Any = pyarrow  # its stubs know too few of the types that meet here
pc: Any = pyarrow.compute
pq: Any = pyarrow.parquet

SCHEMA = pa.schema(
    [
        ("run", pa.string()),
        ("kind", pa.string()),
        ("seed", pa.int64()),
        ("quantity", pa.string()),
        ("value", pa.float64()),
        ("series", pa.list_(pa.float64())),
        ("task", pa.string()),
        ("digest", pa.string()),
        ("code", pa.string()),
    ]
)
"""`task`: kind, seed, configuration and parameters as JSON. `code`: digest of the sources."""


class Store:
    """Folder of a study, for one state of the code. Use within `open_store`."""

    def __init__(self, folder: Path, code: str, any_code: bool = False) -> None:
        self.folder, self.code, self.any_code = folder, code, any_code
        self.parts_folder = folder / "results"
        self.complete_file = self.parts_folder / "results.parquet"
        self.earlier_file = folder / "earlier" / "earlier.parquet"
        self.unreadable: list[Path] = []
        """Renamed files that are not valid Parquet files of a store."""
        self.stale: set[str] = set()  # Digests of runs with results of other code, used or not
        self._tables: dict[str, pyarrow.Table] = {}
        self._next_part = 0

    def read(self) -> None:
        """Read stored results; those of other code only with `any_code`."""
        files = [
            self.complete_file,
            *sorted(self.parts_folder.glob("part-*.parquet")),
            self.earlier_file,
        ]
        for path in filter(Path.is_file, files):
            if path.stem.startswith("part-") and path.stem[5:].isdigit():
                self._next_part = max(self._next_part, int(path.stem[5:]) + 1)
            table = self._read_file(path)
            if table is not None:
                same = pc.equal(table["code"], self.code)
                self.stale.update(read_texts(table.filter(pc.invert(same)), "digest"))
                self._index_rows(table if self.any_code else table.filter(same))
        if not self.any_code:
            self.stale -= self._tables.keys()

    def find_done(self, runs: Iterable[Run]) -> list[Run]:
        """Return those of the runs that have results."""
        return [run for run in runs if run.digest() in self._tables]

    def append(self, outcomes: pyarrow.Table, runs: Mapping[str, Run]) -> None:
        """Write outcomes (rows of `execute.SCHEMA`, `runs` by key) to the disk."""
        keys: list[str] = read_texts(outcomes, "run")
        chosen = [runs[key] for key in keys]
        tasks = {key: canonical_json(runs[key].task) for key in dict.fromkeys(keys)}
        digests = {key: runs[key].digest() for key in tasks}
        table = pa.table(
            {
                "run": outcomes["run"],
                "kind": [run.kind for run in chosen],
                "seed": [run.seed for run in chosen],
                "quantity": outcomes["quantity"],
                "value": outcomes["value"],
                "series": outcomes["series"],
                "task": [tasks[key] for key in keys],
                "digest": [digests[key] for key in keys],
                "code": [self.code] * len(keys),
            },
            schema=SCHEMA,
        )
        _write_file(table, self.parts_folder / f"part-{self._next_part:06}.parquet")
        self._next_part += 1
        self._index_rows(table)

    def collect_rows(self, runs: Sequence[Run]) -> pyarrow.Table:
        """Return the results of these runs, in their order, quantities by name."""
        found = [self._tables.get(run.digest()) for run in runs]
        named = [
            table.set_column(0, "run", pa.array([run.key] * table.num_rows, pa.string()))
            for run, table in zip(runs, found, strict=True)
            if table is not None
        ]
        whole: pyarrow.Table = pa.concat_tables([SCHEMA.empty_table(), *named])
        return whole

    def finish(self, runs: Sequence[Run]) -> None:
        """Write the results of these runs into one file, others of the same code into another."""
        own = {run.digest() for run in runs}
        others = [self._tables[digest] for digest in sorted(self._tables.keys() - own)]
        if others:
            _write_file(pa.concat_tables(others), self.earlier_file)
        _write_file(self.collect_rows(runs), self.complete_file)
        for path in self.parts_folder.glob("part-*.parquet"):
            path.unlink()
        if not others:
            self.earlier_file.unlink(missing_ok=True)

    def _read_file(self, path: Path) -> pyarrow.Table | None:
        try:
            table: pyarrow.Table | None = pq.read_table(str(path))
        except (pa.ArrowException, OSError):  # OSError: corrupt contents
            table = None
        if table is not None and table.schema.equals(SCHEMA):
            return table
        aside = path.with_name(f"{path.name}.unreadable")
        path.replace(aside)
        self.unreadable.append(aside)
        return None

    def _index_rows(self, table: pyarrow.Table) -> None:
        digests = read_texts(table, "digest")
        begin = 0
        for end in range(1, len(digests) + 1):
            if end == len(digests) or digests[end] != digests[begin]:
                self._tables.setdefault(digests[begin], table.slice(begin, end - begin))
                begin = end


@contextmanager
def open_store(
    folder: Path, code: str, *, fresh: bool = False, any_code: bool = False
) -> Iterator[Store]:
    """Yield the locked store of a folder. `fresh`: delete results first. Raises InputError."""
    store = Store(folder, code, any_code)
    try:
        store.parts_folder.mkdir(parents=True, exist_ok=True)
        lock = (folder / ".lock").open("w")
    except OSError as error:
        raise InputError(
            f"cannot write results here: {error.strerror}", path=str(folder)
        ) from error
    with lock:
        _lock_file(lock.fileno(), folder)
        if fresh:
            for path in (*store.parts_folder.glob("*.parquet"), store.earlier_file):
                path.unlink(missing_ok=True)
        for draft in folder.glob("*/.*.draft"):
            draft.unlink()
        store.read()
        yield store


def _lock_file(file: int, folder: Path) -> None:
    try:
        import fcntl
    except ImportError:  # Windows: no lock
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        raise InputError(
            "another command is writing here; name another folder", path=str(folder)
        ) from error


def _write_file(table: pyarrow.Table, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.draft")
    try:
        with draft.open("wb") as file:
            pq.write_table(table, file, compression="zstd")
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            draft.unlink(missing_ok=True)  # free the space on a full disk
        raise InputError(
            f"cannot write the file: {error.strerror or error}", path=str(path)
        ) from error


def read_texts(table: pyarrow.Table, name: str) -> list[str]:
    """Return a column of strings."""
    column: Any = table[name]
    return list(column.to_pylist())
