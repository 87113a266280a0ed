"""Web site of the playground: its page and the answers to requests (docs/design/pages.md).

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

from antecede.core.pages import (
    JSON,
    NOTHING,
    Answer,
    as_title,
    bundle_modules,
    fill_template,
    plain,
    read_asset,
)
from antecede.core.protocols import ENTRIES
from antecede.errors import AntecedeError, InputError
from antecede.lab.check import find_target, is_file_target, make_relative_name
from antecede.lab.check.scenario import JUDGES, Scenario, parse_scenario
from antecede.lab.play import exercise as exercises
from antecede.lab.play.edits import EditResult
from antecede.lab.play.runner import own_name, parse_protocol
from antecede.lab.play.sandbox_process import HANDLERS, Sandbox, SandboxError
from antecede.lab.play.search import SearchManager, SearchRequest
from antecede.lab.play.side_by_side import (
    UNTITLED,
    check_size,
    choose_protocols,
    list_variants,
    parse_limited,
)

MODULES = "modules.txt"


def make_page(title: str) -> str:
    """Return the HTML page; it requests everything else from its server."""
    return fill_template(
        _read_asset("playground.html"),
        load_code(),
        _read_asset("playground.css"),
        "'self'",
        {"TITLE": as_title(title)},
    )


@cache
def load_code() -> str:
    """Return the JavaScript modules as one script; some are shared with the trace page."""
    return bundle_modules(_read_asset(name) for name in _read_asset(MODULES).split())


def _read_asset(name: str) -> str:
    return read_asset("antecede.lab.play", name)


RequestBody = Mapping[str, Any]
DEFAULT_TEXT: Final = """\
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
DEFAULT_PROTOCOLS: Final = ("unordered", "fifo", "bss")
DEFAULT_RELATION: Final = "causal"


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
        self.text, self.path = DEFAULT_TEXT if text is None else text, str(path)
        self.folder = Path(self.path).parent
        named = [_make_relative(self.folder, name) for name in protocols]
        self.exercise = exercise
        self.relation: str | None = None
        if exercise is not None:
            opened = exercises.find_exercise(exercise)
            self.text, named = opened.text, named or list(opened.protocols)
            self.relation = opened.relation or None
        elif text is None:
            named, self.relation = named or list(DEFAULT_PROTOCOLS), DEFAULT_RELATION
        scenario = parse_scenario(self.text, self.path)
        own = own_name(scenario.setup)
        self.protocols = list(dict.fromkeys(named)) or [own]
        names = [parse_protocol(one).protocol for one in (own, *self.protocols)]
        self.own_files = list(dict.fromkeys(name for name in names if is_file_target(name)))
        """Protocol files that requests may name, FILE.py:CLASS, relative to the text."""
        self._allowed = {self._locate(name) for name in self.own_files}

    def _locate(self, target: str) -> tuple[Path, str]:
        file, _, name = target.rpartition(":")
        return (self.folder / file).resolve(), name

    def check(self, *names: str) -> None:
        """Raise InputError for a protocol in a file that was not named at start."""
        for name in (parse_protocol(one).protocol for one in names):
            if is_file_target(name) and not self._may_run(name):
                raise InputError(
                    f"{name}: the file was not named at start; "
                    f"restart with antecede play --protocol {name}"
                )

    def _may_run(self, target: str) -> bool:
        try:
            return self._locate(target) in self._allowed
        except (OSError, ValueError, RuntimeError):  # invalid path, or a loop of links
            return False

    def try_protocols(self) -> None:
        """Raise InputError or LocalError for unusable protocols, files, options or sizes."""
        check_size(parse_limited(self.text, self.path), self.protocols)
        for name in self.protocols:
            setup = parse_protocol(name)
            find_target(self.get_target(setup.protocol), options=setup.options)

    def get_target(self, name: str) -> str:
        """Return a protocol as `antecede check` takes it, from any folder."""
        if not is_file_target(name):
            return name
        file, found = self._locate(name)
        return f"{file}:{found}"

    def compute_version(self) -> str:
        """Return a text that changes when one of the files does."""
        files = [self._locate(name)[0] for name in self.own_files]
        return " ".join(str(file.stat().st_mtime_ns) if file.is_file() else "-" for file in files)


def _make_relative(folder: Path, name: str) -> str:
    setup = parse_protocol(name)
    return own_name(setup._replace(protocol=make_relative_name(folder, setup.protocol)))


class Bench:
    """Web site of the playground; `close` ends its processes."""

    def __init__(self, options: Opened) -> None:
        self.options = options
        self.searches = SearchManager()
        self._sandbox = Sandbox()
        self._lock = threading.Lock()
        """Timeouts of calls share one timer in the process."""
        self._handlers: Mapping[str, Callable[[RequestBody], Mapping[str, Any]]] = {
            "run": lambda said: self._compare(*self._read_run_request(said)),
            "edit": self._handle_edit,
            "search": self._handle_find,
            "stop": self._handle_stop,
            "cut": self._handle_cut,
            "text": self._handle_text,
            "exercise": self._handle_exercise,
            "answer": self._handle_answer,
        }

    def close(self) -> None:
        """End all processes."""
        self.searches.close()
        self._sandbox.close()

    def get(self, path: str, query: Mapping[str, str]) -> Answer:
        """Answer requests for the page, its start options, and the progress of a search."""
        if path == "":
            return Answer(200, "text/html", make_page("The playground").encode())
        if path == "version":
            return plain(200, self.options.compute_version())
        if path == "start":
            return _make_answer(self._describe_start)
        if path == "progress":
            return _make_answer(lambda: self.searches.get_progress(query.get("job", "")))
        return NOTHING

    def post(self, path: str, body: bytes) -> Answer:
        """Answer a request by name."""
        act = self._handlers.get(path)
        if act is None:
            return NOTHING
        return _make_answer(lambda: self._run_handler(act, body))

    def _run_handler(
        self, handler: Callable[[RequestBody], Mapping[str, Any]], body: bytes
    ) -> Mapping[str, Any]:
        try:
            body_object = json.loads(body)
        except (ValueError, RecursionError) as error:
            raise InputError(f"the request is not valid JSON: {error}") from error
        if not isinstance(body_object, dict):
            raise InputError("the request is not a JSON object")
        if handler == self._handle_stop:  # must not wait for a long request
            return handler(body_object)
        with self._lock:
            return handler(body_object)

    def _describe_start(self) -> Mapping[str, Any]:
        listed = [
            {"name": one.name, "title": one.title, "source": one.source, "group": one.group}
            for one in exercises.list_exercises()
        ]
        return {
            "text": self.options.text,
            "path": self.options.path,
            "protocols": self.options.protocols,
            "relation": self.options.relation,
            "names": [_describe_protocol(name) for name in ENTRIES],
            "own_files": self.options.own_files,
            "relations": list(JUDGES),
            "exercises": listed,
            "exercise": self.options.exercise,
            "version": self.options.compute_version(),
        }

    def _read_run_request(self, body: RequestBody) -> tuple[str, list[str], str | None]:
        """Return text, protocols and relation of a request, validated."""
        text, names, relation = (
            _read_text(body, "text"),
            _read_texts(body, "protocols"),
            body.get("relation"),
        )
        if relation is not None and not isinstance(relation, str):
            raise InputError("relation must be a name or null")
        self._parse_checked(text, names)
        return text, names, relation

    def _parse_checked(self, text: str, names: Sequence[str]) -> Scenario:
        scenario = parse_limited(text, self.options.path)
        self.options.check(own_name(scenario.setup), *names)
        check_size(scenario, names or [""])
        return scenario

    def _call(self, handler: str, names: Iterable[str], *arguments: Any) -> Any:
        if any(_is_in_file(name) for name in names):
            return self._sandbox.call(handler, *arguments)
        return HANDLERS[handler](*arguments)

    def _compare(self, text: str, names: list[str], relation: str | None) -> Mapping[str, Any]:
        chosen_names, path = (
            choose_protocols(self._parse_checked(text, names), names),
            self.options.path,
        )
        try:
            answer: Mapping[str, Any] = self._call(
                "compare", chosen_names, text, names, relation, path
            )
        except SandboxError as error:
            failed = self._find_failed(text, chosen_names, relation, error)
            remaining = [name for name in chosen_names if name not in failed]
            answer = self._call("compare", remaining, text, names, relation, path, failed)
        return answer

    def _find_failed(
        self, text: str, names: Sequence[str], relation: str | None, error: SandboxError
    ) -> Mapping[str, str]:
        own = [name for name in names if _is_in_file(name)]
        failed = {}
        for name in own if len(own) > 1 else ():
            try:
                self._sandbox.call("compare", text, [name], relation, self.options.path)
            except SandboxError as its:
                failed[name] = its.message
        return failed or dict.fromkeys(own, error.message)

    def _handle_edit(self, body: RequestBody) -> Mapping[str, Any]:
        text, names, relation = self._read_run_request(body)
        edit = body.get("edit")
        if not isinstance(edit, dict):
            raise InputError("edit must be an object")
        chosen_names = choose_protocols(self._parse_checked(text, names), names)
        try:
            made: EditResult = self._call(
                "edit", chosen_names, text, edit, names, self.options.path
            )
        except SandboxError:  # try the other protocols
            if not (others := [name for name in chosen_names if not _is_in_file(name)]):
                raise
            made = self._call("edit", others, text, edit, others, self.options.path)
        return {**self._compare(made.text, names, relation), "note": made.note}

    def _handle_text(self, body: RequestBody) -> Mapping[str, Any]:
        text = _read_text(body, "text")
        own = own_name(self._parse_checked(text, ()).setup)
        return {"text": self._call("text", [own], text, self.options.path)}

    def _handle_cut(self, body: RequestBody) -> Mapping[str, Any]:
        text, _, relation = self._read_run_request(body)
        name = _read_text(body, "protocol") if "protocol" in body else ""
        (name,) = choose_protocols(self._parse_checked(text, [name] if name else []), [name])
        arguments = (
            text,
            name,
            relation,
            body.get("counts"),
            body.get("by", "arrivals"),
            self.options.path,
        )
        answer: Mapping[str, Any] = self._call("cut", [name], *arguments)
        return answer

    def _handle_find(self, body: RequestBody) -> Mapping[str, Any]:
        name = _read_text(body, "protocol")
        self.options.check(name)
        setup = parse_protocol(name)
        options = body.get("options") or {}
        if not isinstance(options, dict):
            raise InputError("options must be an object of texts")
        merged = (*setup.options, *((str(name), str(value)) for name, value in options.items()))
        variant = body.get("variant") or ""
        search = SearchRequest(
            self.options.get_target(setup.protocol),
            variant if isinstance(variant, str) else "",
            merged,
            _read_number(body, "members"),
            _read_number(body, "messages"),
            body.get("thorough") is True,
            str(self.options.folder),
        )
        return {"job": self.searches.start(search)}

    def _handle_stop(self, body: RequestBody) -> Mapping[str, Any]:
        return self.searches.stop(_read_text(body, "job"))

    def _handle_exercise(self, body: RequestBody) -> Mapping[str, Any]:
        exercise = exercises.find_exercise(_read_text(body, "name"))
        questions = [
            {"ask": question.ask, "hint": question.hint} for question in exercise.questions
        ]
        return {
            "name": exercise.name,
            "title": exercise.title,
            "group": exercise.group,
            "source": exercise.source,
            "about": exercise.about,
            "text": exercise.text,
            "protocols": list(exercise.protocols),
            "relation": exercise.relation or None,
            "hides_outcomes": exercise.hides_outcomes,
            "questions": questions,
        }

    def _handle_answer(self, body: RequestBody) -> Mapping[str, Any]:
        number = _read_number(body, "question")
        if number is None:
            raise InputError("question must be a number from 0")
        answer = exercises.compute_answer(_read_text(body, "name"), number)
        facts = [{"subject": words, "value": value} for words, value in answer.facts]
        return {"answer": answer.answer, "facts": facts}


def _is_in_file(name: str) -> bool:
    return is_file_target(parse_protocol(name).protocol)


def _describe_protocol(name: str) -> dict[str, Any]:
    known = ENTRIES[name]
    return {
        "name": name,
        "title": known.title,
        "source": known.source,
        "flat": known.flat,
        "variants": list_variants(name),
    }


def _make_answer(act: Callable[[], Mapping[str, Any]]) -> Answer:
    try:
        return _make_json_answer(200, act())
    except AntecedeError as error:
        words = error.message if isinstance(error, InputError) else str(error)
        return _make_json_answer(422, {"error": words, "line": getattr(error, "line", None)})
    except Exception as error:
        traceback.print_exc()
        return _make_json_answer(
            500, {"error": f"internal error of the playground: {error!r}", "line": None}
        )


def _make_json_answer(status: int, value: Mapping[str, Any]) -> Answer:
    # JSON escapes lone surrogates, which UTF-8 cannot encode.
    return Answer(status, JSON, json.dumps(value).encode())


def _read_text(body: RequestBody, name: str) -> str:
    value = body.get(name)
    if not isinstance(value, str):
        raise InputError(f"{name} must be a text")
    return value


def _read_texts(body: RequestBody, name: str) -> list[str]:
    value = body.get(name) or []
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise InputError(f"{name} must be a list of texts")
    return [" ".join(one.split()) for one in value if one.strip()]


def _read_number(body: RequestBody, name: str) -> int | None:
    value = body.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int):
        raise InputError(f"{name} must be a whole number")
    return value
