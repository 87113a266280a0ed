"""Web site of the playground: its page and the answers to requests (docs/design/play.md).

`antecede.core.pages.local_server` controls access. The page holds the text and sends it with each
request. The server has no state except a running search (`antecede.lab.play.search`). Scenarios
with a user's class run in another process (`antecede.lab.play.sandbox_process`). Only files named
at start are loaded.
"""

from __future__ import annotations

import json
import threading
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final

from antecede.core.pages import JSON, NOTHING, Answer, as_title, filled, joined, plain, read_asset
from antecede.core.protocols import ENTRIES
from antecede.errors import AntecedeError, InputError
from antecede.lab.check import find_target, is_file_target, named_from
from antecede.lab.check.scenario import JUDGES, Script, parse_script
from antecede.lab.play import exercise as exercises
from antecede.lab.play.edits import Edited
from antecede.lab.play.runner import named_setup, own_name
from antecede.lab.play.sandbox_process import ACTS, Apart, GivenUpError
from antecede.lab.play.search import Finder, Search
from antecede.lab.play.side_by_side import UNTITLED, check_size, chosen, parsed, variants_of

MODULES = "modules.txt"


def page(title: str) -> str:
    """Return the HTML page; it requests everything else from its server."""
    return filled(
        _read("playground.html"),
        code(),
        _read("playground.css"),
        "'self'",
        {"TITLE": as_title(title)},
    )


@cache
def code() -> str:
    """Return the JavaScript modules as one script; some are shared with the trace page."""
    return joined(_read(name) for name in _read(MODULES).split())


def _read(name: str) -> str:
    return read_asset("antecede.lab.play", name)


Said = Mapping[str, Any]
FIRST: Final = """\
title A message overtakes its cause
protocol bss
members P1 P2 P3

send P1 a
arrive P2 a
send P2 b after a
arrive P3 b
arrive P3 a
arrive P1 b
"""
"""Default scenario, with its protocols and checked relation."""
BESIDE: Final = ("unordered", "fifo", "bss")
JUDGE: Final = "causal"


class Opened:
    """Start options of the playground."""

    def __init__(
        self,
        text: str | None = None,
        path: str | Path = UNTITLED,
        protocols: Iterable[str] = (),
        exercise: str | None = None,
    ) -> None:
        """`protocols`: as after `protocol` in a scenario; files are relative to the working folder.
        `text`: None is the default scenario. Raises ScenarioError for an invalid text, InputError
        for an unknown exercise.
        """
        self.text, self.path = FIRST if text is None else text, str(path)
        self.folder = Path(self.path).parent
        asked = [_from(self.folder, name) for name in protocols]
        self.exercise = exercise
        self.judge: str | None = None
        if exercise is not None:
            opened = exercises.opened(exercise)
            self.text, asked = opened.text, asked or list(opened.protocols)
            self.judge = opened.judge or None
        elif text is None:
            asked, self.judge = asked or list(BESIDE), JUDGE
        script = parse_script(self.text, self.path)
        own = own_name(script.setup)
        self.protocols = list(dict.fromkeys(asked)) or [own]
        names = [named_setup(one).protocol for one in (own, *self.protocols)]
        self.own = list(dict.fromkeys(name for name in names if is_file_target(name)))
        """Protocol files that requests may name, FILE.py:CLASS, relative to the text."""
        self._allowed = {self._place(name) for name in self.own}

    def _place(self, target: str) -> tuple[Path, str]:
        file, _, name = target.rpartition(":")
        return (self.folder / file).resolve(), name

    def check(self, *names: str) -> None:
        """Raise InputError for a protocol in a file that was not named at start."""
        for name in (named_setup(one).protocol for one in names):
            if is_file_target(name) and not self._may_run(name):
                raise InputError(
                    f"{name}: the file was not named at start; "
                    f"restart with antecede play --protocol {name}"
                )

    def _may_run(self, target: str) -> bool:
        try:
            return self._place(target) in self._allowed
        except (OSError, ValueError, RuntimeError):  # invalid path, or a loop of links
            return False

    def try_protocols(self) -> None:
        """Raise InputError or LocalError for unusable protocols, files or options, or excessive
        size.
        """
        check_size(parsed(self.text, self.path), self.protocols)
        for name in self.protocols:
            setup = named_setup(name)
            find_target(self.target(setup.protocol), options=setup.options)

    def target(self, name: str) -> str:
        """Return a protocol as `antecede check` takes it, from any folder."""
        if not is_file_target(name):
            return name
        file, found = self._place(name)
        return f"{file}:{found}"

    def version(self) -> str:
        """Return a text that changes when one of the files does."""
        files = [self._place(name)[0] for name in self.own]
        return " ".join(str(file.stat().st_mtime_ns) if file.is_file() else "-" for file in files)


def _from(folder: Path, name: str) -> str:
    setup = named_setup(name)
    return own_name(setup._replace(protocol=named_from(folder, setup.protocol)))


class Bench:
    """Web site of the playground; `close` ends its processes."""

    def __init__(self, opened: Opened) -> None:
        self.opened = opened
        self.finder = Finder()
        self._apart = Apart()
        self._one_at_a_time = threading.Lock()
        """Timeouts of calls share one timer in the process."""
        self._asked: Mapping[str, Callable[[Said], Mapping[str, Any]]] = {
            "run": lambda said: self._bench(*self._played(said)),
            "edit": self._edit,
            "search": self._find,
            "stop": self._stop,
            "cut": self._cut,
            "text": self._text,
            "exercise": self._exercise,
            "answer": self._answer,
        }

    def close(self) -> None:
        """End all processes."""
        self.finder.close()
        self._apart.close()

    def got(self, path: str, asked: Mapping[str, str]) -> Answer:
        """Answer requests for the page, its start options, and the progress of a search."""
        if path == "":
            return Answer(200, "text/html", page("The playground").encode())
        if path == "version":
            return plain(200, self.opened.version())
        if path == "start":
            return _answered(self._start)
        if path == "progress":
            return _answered(lambda: self.finder.found(asked.get("job", "")))
        return NOTHING

    def posted(self, path: str, body: bytes) -> Answer:
        """Answer a request by name."""
        act = self._asked.get(path)
        if act is None:
            return NOTHING
        return _answered(lambda: self._acted(act, body))

    def _acted(self, act: Callable[[Said], Mapping[str, Any]], body: bytes) -> Mapping[str, Any]:
        try:
            said = json.loads(body)
        except (ValueError, RecursionError) as error:
            raise InputError(f"the request is not valid JSON: {error}") from error
        if not isinstance(said, dict):
            raise InputError("the request is not a JSON object")
        if act == self._stop:  # must not wait for a long request
            return act(said)
        with self._one_at_a_time:
            return act(said)

    def _start(self) -> Mapping[str, Any]:
        listed = [
            {"name": one.name, "title": one.title, "source": one.source, "group": one.group}
            for one in exercises.listed()
        ]
        return {
            "text": self.opened.text,
            "path": self.opened.path,
            "protocols": self.opened.protocols,
            "relation": self.opened.judge,
            "names": [_named(name) for name in ENTRIES],
            "own_files": self.opened.own,
            "relations": list(JUDGES),
            "exercises": listed,
            "exercise": self.opened.exercise,
            "version": self.opened.version(),
        }

    def _played(self, said: Said) -> tuple[str, list[str], str | None]:
        """Return text, protocols and relation of a request, validated."""
        text, names, judge = _text(said, "text"), _texts(said, "protocols"), said.get("relation")
        if judge is not None and not isinstance(judge, str):
            raise InputError("relation must be a name or null")
        self._script(text, names)
        return text, names, judge

    def _script(self, text: str, names: Sequence[str]) -> Script:
        script = parsed(text, self.opened.path)
        self.opened.check(own_name(script.setup), *names)
        check_size(script, names or [""])
        return script

    def _do(self, act: str, names: Iterable[str], *asked: Any) -> Any:
        """Return the answer of one of `HANDLERS`; `names`: the protocols to run."""
        if any(_in_file(name) for name in names):
            return self._apart.ask(act, *asked)
        return ACTS[act](*asked)

    def _bench(self, text: str, names: list[str], judge: str | None) -> Mapping[str, Any]:
        played, path = chosen(self._script(text, names), names), self.opened.path
        try:
            told: Mapping[str, Any] = self._do("bench", played, text, names, judge, path)
        except GivenUpError as error:
            failed = self._failed(text, played, judge, error)
            left = [name for name in played if name not in failed]
            told = self._do("bench", left, text, names, judge, path, failed)
        return told

    def _failed(
        self, text: str, names: Sequence[str], judge: str | None, error: GivenUpError
    ) -> Mapping[str, str]:
        """Return the protocols that end their process, with the error."""
        own = [name for name in names if _in_file(name)]
        failed = {}
        for name in own if len(own) > 1 else ():
            try:
                self._apart.ask("bench", text, [name], judge, self.opened.path)
            except GivenUpError as its:
                failed[name] = its.message
        return failed or dict.fromkeys(own, error.message)

    def _edit(self, said: Said) -> Mapping[str, Any]:
        text, names, judge = self._played(said)
        edit = said.get("edit")
        if not isinstance(edit, dict):
            raise InputError("edit must be an object")
        played = chosen(self._script(text, names), names)
        try:
            made: Edited = self._do("edited", played, text, edit, names, self.opened.path)
        except GivenUpError:  # try the other protocols
            if not (others := [name for name in played if not _in_file(name)]):
                raise
            made = self._do("edited", others, text, edit, others, self.opened.path)
        return {**self._bench(made.text, names, judge), "note": made.note}

    def _text(self, said: Said) -> Mapping[str, Any]:
        text = _text(said, "text")
        own = own_name(self._script(text, ()).setup)
        return {"text": self._do("text", [own], text, self.opened.path)}

    def _cut(self, said: Said) -> Mapping[str, Any]:
        text, _, judge = self._played(said)
        name = _text(said, "protocol") if "protocol" in said else ""
        (name,) = chosen(self._script(text, [name] if name else []), [name])
        asked = text, name, judge, said.get("counts"), said.get("by", "arrivals"), self.opened.path
        told: Mapping[str, Any] = self._do("cut", [name], *asked)
        return told

    def _find(self, said: Said) -> Mapping[str, Any]:
        name = _text(said, "protocol")
        self.opened.check(name)
        setup = named_setup(name)
        options = said.get("options") or {}
        if not isinstance(options, dict):
            raise InputError("options must be an object of texts")
        given = (*setup.options, *((str(name), str(value)) for name, value in options.items()))
        variant = said.get("variant") or ""
        search = Search(
            self.opened.target(setup.protocol),
            variant if isinstance(variant, str) else "",
            given,
            _number(said, "members"),
            _number(said, "messages"),
            said.get("thorough") is True,
            str(self.opened.folder),
        )
        return {"job": self.finder.begin(search)}

    def _stop(self, said: Said) -> Mapping[str, Any]:
        return self.finder.stop(_text(said, "job"))

    def _exercise(self, said: Said) -> Mapping[str, Any]:
        one = exercises.opened(_text(said, "name"))
        asked = [{"ask": question.ask, "hint": question.hint} for question in one.questions]
        return {
            "name": one.name,
            "title": one.title,
            "group": one.group,
            "source": one.source,
            "about": one.about,
            "text": one.text,
            "protocols": list(one.protocols),
            "relation": one.judge or None,
            "hides_outcomes": one.quiet,
            "questions": asked,
        }

    def _answer(self, said: Said) -> Mapping[str, Any]:
        number = _number(said, "question")
        if number is None:
            raise InputError("question must be a number from 0")
        found = exercises.answer(_text(said, "name"), number)
        facts = [{"subject": words, "value": value} for words, value in found.facts]
        return {"answer": found.answer, "facts": facts}


def _in_file(name: str) -> bool:
    return is_file_target(named_setup(name).protocol)


def _named(name: str) -> dict[str, Any]:
    known = ENTRIES[name]
    return {
        "name": name,
        "title": known.title,
        "source": known.source,
        "flat": known.flat,
        "variants": variants_of(name),
    }


def _answered(act: Callable[[], Mapping[str, Any]]) -> Answer:
    try:
        return _json(200, act())
    except AntecedeError as error:
        words = error.message if isinstance(error, InputError) else str(error)
        return _json(422, {"error": words, "line": getattr(error, "line", None)})
    except Exception as error:
        traceback.print_exc()
        return _json(500, {"error": f"internal error of the playground: {error!r}", "line": None})


def _json(status: int, value: Mapping[str, Any]) -> Answer:
    # JSON escapes lone surrogates, which UTF-8 cannot encode.
    return Answer(status, JSON, json.dumps(value).encode())


def _text(said: Said, name: str) -> str:
    value = said.get(name)
    if not isinstance(value, str):
        raise InputError(f"{name} must be a text")
    return value


def _texts(said: Said, name: str) -> list[str]:
    value = said.get(name) or []
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise InputError(f"{name} must be a list of texts")
    return [" ".join(one.split()) for one in value if one.strip()]


def _number(said: Said, name: str) -> int | None:
    value = said.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int):
        raise InputError(f"{name} must be a whole number")
    return value
