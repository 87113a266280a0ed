"""Jars from Maven: downloaded once, again if the list changes; errors have a reason."""

from __future__ import annotations

from pathlib import Path

import pytest

from antecede.errors import SetupError
from antecede.spark.java import find_java
from pipeline import broker
from pipeline.run import Options, resolve_jars

FAKE = """#!/bin/sh
for word do case $word in -DoutputDirectory=*) out=${word#-DoutputDirectory=} ;; esac; done
echo called >> "$CALLS"
touch "$out/some.jar"
"""
FAILS = "#!/bin/sh\necho '[INFO] working'; echo '[ERROR] no such artifact: x:y:1'; exit 1\n"


def maven(folder: Path, script: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Create a script mvn on the PATH; return the file with its call count."""
    path = folder / "bin" / "mvn"
    path.parent.mkdir()
    path.write_text(script)
    path.chmod(0o755)
    monkeypatch.setenv("PATH", f"{path.parent}:/usr/bin:/bin")
    monkeypatch.setenv("CALLS", str(folder / "calls"))
    return folder / "calls"


def test_jars_are_brought_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = maven(tmp_path, FAKE, monkeypatch)
    cache = tmp_path / "cache"
    folders = broker.resolve(cache)
    assert broker.resolve(cache) == folders == (cache / "broker", cache / "spark")
    assert calls.read_text() == "called\n" * 2
    (cache / "spark" / broker.RESOLVED).write_text("another list")
    broker.resolve(cache)
    assert calls.read_text() == "called\n" * 3
    assert resolve_jars(Options(tmp_path, cache=cache)) == (folders, "")


def test_what_maven_says_is_the_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    maven(tmp_path, FAILS, monkeypatch)
    with pytest.raises(SetupError, match="no such artifact"):
        broker.resolve(tmp_path / "cache")
    jars, why = resolve_jars(Options(tmp_path, cache=tmp_path / "cache"))
    assert jars is None
    assert why == "Maven failed for broker: [ERROR] no such artifact: x:y:1"


def test_no_maven_is_a_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert resolve_jars(Options(tmp_path, cache=tmp_path)) == (None, "Maven (mvn) is not installed")
    assert resolve_jars(Options(tmp_path, files=True)) == (None, "requested by --files")


def test_a_broker_that_cannot_start_says_so(tmp_path: Path) -> None:
    try:
        find_java()
    except SetupError as error:
        pytest.skip(str(error))
    (tmp_path / "jars").mkdir()
    run = broker.broker(tmp_path / "jars", tmp_path / "run")
    with pytest.raises(SetupError, match="cannot format the broker's storage"), run:
        pass
