"""Custom readers: public names, `register`, entry points, example of the docs."""

from __future__ import annotations

import importlib.metadata
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import antecede.tables.trace
from antecede.errors import FormatError, InputError
from antecede.tables.trace import reader
from antecede.tables.trace.reader import Reader
from tests.tables.trace.files import write_file

ROOT = Path(__file__).resolve().parents[3]
NOTES = """%notes
17 ann 2026-03-01T10:00:00Z - Shall we move the release?
18 bob 2026-03-01T09:59:58Z 17 Fine with me.

what is this
19 eve soon 17,18 Moved.
"""


def run(arguments: list[str], *folders: Path) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join(map(str, (*folders, ROOT / "src")))
    return subprocess.run(
        [sys.executable, *arguments],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    return write_file(tmp_path, NOTES, "meeting.notes")


def package(folder: Path, value: str) -> Path:
    """Write the files of an installed package with a reader."""
    info = folder / "site" / "notes_reader-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: notes-reader\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[antecede.readers]\nnotes = {value}\n")
    return folder / "site"


@pytest.mark.slow
def test_the_example_runs(notes: Path) -> None:
    done = run([str(ROOT / "examples" / "own_reader.py"), str(notes)])
    assert done.returncode == 0, done.stderr
    assert "meeting.notes: notes, 3 events of 3 members" in done.stdout
    assert "1 bad row quarantined: 1 x not a note" in done.stdout
    assert "effect before its cause by the sender's clock, by up to 2.0 s" in done.stdout


@pytest.mark.slow
def test_an_installed_package_adds_a_format(notes: Path, tmp_path: Path) -> None:
    site = package(tmp_path, "own_reader:NotesReader")
    done = run(["-m", "antecede", "audit", "--json", str(notes)], site, ROOT / "examples")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert (report["format"], report["messages"], report["edges"]) == ("notes", 3, 3)
    assert report["details"]["empty_lines"] == 1
    assert report["details"]["quarantine"] == {"not a note": 1}


@pytest.mark.slow
def test_a_package_that_cannot_be_loaded_stops_nobody_else(notes: Path, tmp_path: Path) -> None:
    site = package(tmp_path, "nowhere_at_all:NotesReader")
    table = write_file(tmp_path, "id,parent\na,\nb,a\n", "t.csv")
    assert run(["-m", "antecede", "audit", str(table)], site).returncode == 0
    done = run(["-m", "antecede", "audit", "--format", "notes", str(notes)], site)
    assert done.returncode == 2
    assert "reader 'notes' failed to load: nowhere_at_all:NotesReader" in done.stderr
    assert "Traceback" not in done.stderr


class Fake:
    """Reader of an entry point with a built-in name."""

    name = "mail"

    def sniff(self, path: Path, head: bytes) -> float:
        return 1.0


def test_an_entry_point_does_not_take_a_built_in_name(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = importlib.metadata.EntryPoint("mail", f"{__name__}:Fake", reader.ENTRY_POINTS)
    for name, value in (("_READERS", dict(reader._READERS)), ("_LOAD_ERRORS", {}), ("_LOADED", [])):
        monkeypatch.setattr(reader, name, value)
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda **_: [entry])
    assert not isinstance(reader.by_name("mail"), Fake)
    assert reader._LOAD_ERRORS == {}


def test_what_is_no_reader_is_refused() -> None:
    nothing: list[object] = [object(), Fake, Fake()]
    for wrong in nothing:
        with pytest.raises(InputError, match="not a reader"):
            reader.register(wrong)  # type: ignore[arg-type]
    assert not isinstance(reader.by_name("mail"), Fake)
    with pytest.raises(
        FormatError, match="choose from automerge, cloudevents, editing, git, irc, lora, mail"
    ):
        reader.by_name("verse")


def test_public_names() -> None:
    for name in antecede.tables.trace.__all__:
        assert getattr(antecede.tables.trace, name) is not None
    assert antecede.tables.trace.Reader is Reader
    with pytest.raises(AttributeError, match="no attribute 'sniff'"):
        antecede.tables.trace.sniff  # type: ignore[attr-defined]  # noqa: B018


def test_the_schema_and_the_names_of_readers_load_no_pyarrow() -> None:
    code = (
        "import sys; import antecede.tables.trace.schema; "
        "assert 'antecede.tables.trace.reader' not in sys.modules; "
        "from antecede.tables.trace import Detail, Event, Item, Quarantined, ReadOptions; "
        "from antecede.tables.trace import register; "
        "assert 'pyarrow' not in sys.modules and 'numpy' not in sys.modules"
    )
    done = run(["-c", code])
    assert done.returncode == 0, done.stderr
