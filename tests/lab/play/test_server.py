"""Web site of the playground: access, answers, and no file loaded by a request."""

from __future__ import annotations

import http.client
import json
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from antecede.core.pages.local_server import MOST_BYTES, LocalServer
from antecede.errors import InputError, ScenarioError
from antecede.lab.play import exercise as exercises
from antecede.lab.play.sandbox_process import HANDLERS
from antecede.lab.play.server import Bench, Opened
from antecede.lab.play.side_by_side import compare_protocols

PLAIN = "protocol fifo\nmembers A B\n\nsend A m\narrive B m\n"
TEXT = "title <img src=x onerror=alert(1)>\nprotocol bss\nmembers A B C\n\nsend A m\narrive B m\n"


class Asked:
    """Served playground with a client."""

    def __init__(self, opened: Opened) -> None:
        self.site = Bench(opened)
        self.served = LocalServer(self.site)
        self.word = urlsplit(self.served.url).path
        self.thread = threading.Thread(target=self.served.serve)
        self.thread.start()

    def end(self) -> None:
        self.site.close()
        self.served.close()
        self.thread.join(5)

    def ask(
        self, method: str, path: str, body: bytes | None = None, **headers: str
    ) -> tuple[int, bytes, Any]:
        line = http.client.HTTPConnection("127.0.0.1", self.served.port, timeout=60)
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        line.request(method, path, body, named)
        answer = line.getresponse()
        read = answer.read()
        line.close()
        return answer.status, read, answer.headers

    def get(self, name: str) -> Any:
        status, body, _ = self.ask("GET", self.word + name)
        assert status == 200, body
        return json.loads(body)

    def post(self, name: str, /, **said: Any) -> Any:
        status, body, _ = self.post_raw(name, json.dumps(said).encode())
        assert status == 200, body
        return json.loads(body)

    def post_rejected(self, name: str, /, **said: Any) -> Any:
        status, body, _ = self.post_raw(name, json.dumps(said).encode())
        assert status == 422, body
        return json.loads(body)

    def post_raw(self, name: str, body: bytes, **headers: str) -> tuple[int, bytes, Any]:
        given = {"Content_Type": "application/json", **headers}
        return self.ask("POST", self.word + name, body, **given)


Serve = Callable[..., Asked]


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Yield a factory of served playgrounds."""
    made: list[Asked] = []

    def begin(*given: Any, **named: Any) -> Asked:
        made.append(Asked(Opened(*given, **named)))
        return made[-1]

    yield begin
    for one in made:
        one.end()


@pytest.fixture(scope="module")
def asked() -> Iterator[Asked]:
    made = Asked(Opened())
    yield made
    made.end()


def test_the_first_scene_shows_what_protocols_are_for(asked: Asked) -> None:
    start = asked.get("start")
    assert start["relation"] == "causal"
    shown = asked.post("run", **{key: start[key] for key in ("text", "protocols", "relation")})
    assert [len(run["violations"]) for run in shown["runs"]] == [1, 1, 0]
    assert [len(run["holds"]) for run in shown["runs"]] == [0, 0, 1]
    assert Opened(start["text"]).relation is None
    assert Opened(protocols=["ses"]).protocols == ["ses"]
    assert Opened(exercise="bss-overtaking").relation == (
        exercises.find_exercise("bss-overtaking").relation or None
    )


def test_only_who_knows_the_word_and_names_this_host_is_answered(asked: Asked) -> None:
    port = asked.served.port
    body = json.dumps({"text": TEXT}).encode()
    assert asked.ask("GET", asked.word + "start")[0] == 200
    assert asked.ask("GET", "/guess/start")[0] == 404
    assert asked.ask("GET", asked.word + "start", Host=f"rebound.example:{port}")[0] == 403
    assert asked.ask("GET", asked.word + "start", Host=f"localhost:{port}")[0] == 200
    assert asked.post_raw("run", body)[0] == 200
    assert asked.post_raw("run", body, Host=f"rebound.example:{port}")[0] == 403
    assert asked.ask("POST", "/guess/run", body, Content_Type="application/json")[0] == 404


def test_only_the_page_itself_may_say_something(asked: Asked) -> None:
    body = json.dumps({"text": TEXT}).encode()
    own = f"http://127.0.0.1:{asked.served.port}"
    assert asked.post_raw("run", body, Origin=own)[0] == 200
    assert asked.post_raw("run", body, Origin="http://evil.example")[0] == 403
    assert asked.post_raw("run", body, Origin="null")[0] == 403
    assert asked.post_raw("run", body, Origin=own.replace("http", "https"))[0] == 403
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""):
        assert asked.post_raw("run", body, Content_Type=kind)[0] == 415
    assert asked.post_raw("run", body, Content_Type="application/json; charset=utf-8")[0] == 200
    status, _, headers = asked.post_raw("run", body)
    assert (status, headers["Cache-Control"]) == (200, "no-store")
    assert headers["Content-Type"].startswith("application/json")
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert "Access-Control-Allow-Origin" not in headers


def test_what_is_too_long_or_no_json_is_refused(asked: Asked) -> None:
    assert asked.post_raw("run", b"x" * (MOST_BYTES + 1))[0] == 413
    assert asked.post_raw("run", b"", Content_Length="-1")[0] == 411
    assert asked.post_raw("run", b"", Content_Length="9" * 400)[0] == 413
    assert asked.post_raw("run", b"{}", Transfer_Encoding="chunked", Content_Length="2")[0] == 411
    assert asked.post_raw("run", b"", Content_Length="0" * 12 + "2000000")[0] == 413
    assert asked.post_raw("run", b"", Content_Length="0" * 5_000)[0] == 413
    assert asked.ask("GET", "ftp://[/x")[0] == 404
    assert asked.ask("GET", asked.word + "start?x=1#y/../z")[0] == 200
    for body in (b"", b"[]", b"nothing", b"[" * 100_000, b'{"text": "\xff"}', b"9" * 5_000):
        status, answer, _ = asked.post_raw("run", body)
        assert status == 422
        assert "JSON" in json.loads(answer)["error"]
    assert asked.post_raw("dance", b"{}")[0] == 404
    assert asked.ask("GET", asked.word + "run")[0] == 404
    assert asked.ask("GET", asked.word + "../../etc/passwd")[0] == 404


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("run", {}),
        ("run", {"text": 1}),
        ("run", {"text": TEXT, "protocols": "bss"}),
        ("run", {"text": TEXT, "protocols": [1]}),
        ("run", {"text": TEXT, "relation": 1}),
        ("run", {"text": TEXT, "relation": "nobody"}),
        ("run", {"text": "dance"}),
        ("run", {"text": "protocol fifo\nmembers A\n" + "tick 1\n" * 401}),
        ("edit", {"text": TEXT}),
        ("edit", {"text": TEXT, "edit": []}),
        ("edit", {"text": TEXT, "edit": {"kind": []}}),
        ("edit", {"text": TEXT, "edit": {"kind": "remove", "command": 1e9}}),
        ("cut", {"text": TEXT}),
        ("cut", {"text": TEXT, "counts": {"Z": 1}}),
        ("cut", {"text": TEXT, "counts": {}, "protocol": 7}),
        ("cut", {"text": TEXT, "counts": {}, "by": "luck"}),
        ("cut", {"text": TEXT, "counts": {}, "protocol": "hierarchical"}),
        ("search", {}),
        ("search", {"protocol": "fofi"}),
        ("search", {"protocol": "bss", "members": "3"}),
        ("search", {"protocol": "bss", "options": 3}),
        ("search", {"protocol": ""}),
        ("stop", {"job": "none"}),
        ("exercise", {"name": "none"}),
        ("exercise", {}),
        ("answer", {"name": "bss-example"}),
        ("answer", {"name": "bss-example", "question": 99}),
        ("answer", {"name": "bss-example", "question": True}),
        ("text", {"text": "protocol fofi\nmembers A\n"}),
    ],
)
def test_what_cannot_be_is_told_in_words(asked: Asked, name: str, said: dict[str, Any]) -> None:
    told = asked.post_rejected(name, **said)
    assert isinstance(told["error"], str)
    assert len(told["error"]) > 8


def test_the_line_of_an_error_is_told(asked: Asked) -> None:
    told = asked.post_rejected("run", text="protocol fifo\nmembers A\ndance\n")
    assert told["line"] == 3
    assert told["error"].startswith("unknown command 'dance'")


def test_the_page_begins_with_what_the_bench_was_started_with(asked: Asked) -> None:
    told = asked.get("start")
    assert told["protocols"] == ["unordered", "fifo", "bss"]
    assert told["own_files"] == []
    assert {"idr", "hierarchical", "htbc"} <= {one["name"] for one in told["names"]}
    assert "causal" in told["relations"]
    assert told["exercises"][0].keys() == {"name", "title", "source", "group"}
    assert asked.post("run", text=told["text"])["runs"][0]["error"] is None
    other = Opened("protocol fifo\nmembers A B\n")
    assert (other.protocols, other.relation) == (["fifo"], None)


def test_a_run_is_the_bench_s(asked: Asked) -> None:
    told = asked.post("run", text=TEXT, protocols=["unordered", "bss"], relation="causal")
    assert told == json.loads(json.dumps(compare_protocols(TEXT, ["unordered", "bss"], "causal")))


def test_markup_stays_text(asked: Asked) -> None:
    assert asked.post("run", text=TEXT)["title"] == "<img src=x onerror=alert(1)>"
    odd = "protocol fifo\nmembers <b> A\n\nsend <b> \ud800\narrive A \ud800\n"
    assert asked.post("run", text=odd)["runs"][0]["error"] is None


def test_a_change_answers_the_new_text_and_its_runs(asked: Asked) -> None:
    edit = {"kind": "remove", "command": 0}
    told = asked.post("edit", text=TEXT, protocols=["bss"], edit=edit)
    assert told["commands"] == []
    assert told["note"] == "also removed: 'arrive B m'"
    assert told["text"].startswith("title <img")
    wrong = {"kind": "move", "command": 1, "to": 0}
    assert "cannot be before" in asked.post_rejected("edit", text=TEXT, edit=wrong)["error"]


def test_a_text_gets_its_expected_output(asked: Asked) -> None:
    assert "= B delivers m\n" in asked.post("text", text=TEXT)["text"]


def test_a_cut_is_told(asked: Asked) -> None:
    told = asked.post("cut", text=TEXT, protocol="unordered", counts={"B": 1})
    assert told["consistent"] is False
    assert told["crossing"] == [["m", "A", "B"]]
    held = TEXT + "send B n\narrive C n\n"
    counts = {"A": 1, "B": 2, "C": 1}
    assert asked.post("cut", text=held, protocol="bss", counts=counts)["consistent"]
    assert "C has 0 events" in asked.post_rejected(
        "cut", text=held, protocol="bss", counts=counts, by="deliveries"
    )["error"]  # fmt: skip


def test_a_search_is_begun_watched_and_stopped(asked: Asked) -> None:
    said = {"protocol": "bss", "variant": "as-published", "members": 3, "messages": 2}
    job = asked.post("search", **said)["job"]
    until = time.monotonic() + 120
    while not (told := asked.get(f"progress?job={job}"))["done"] and time.monotonic() < until:
        time.sleep(0.1)
    assert told["ok"] is False
    assert asked.post("run", text=told["text"])["runs"][0]["error"] is None
    job = asked.post("search", protocol="idr", members=4, messages=6)["job"]
    assert asked.post("stop", job=job)["stopped"]
    status, body, _ = asked.ask("GET", asked.word + "progress?job=other")
    assert status == 422
    assert json.loads(body)["error"] == "unknown search job"


@pytest.mark.slow
def test_a_search_is_stopped_while_something_is_played(serve: Serve, files: Path) -> None:
    own = files / "own.py"
    code = own.read_text("utf-8").replace(
        "return [Deliver(message)]",
        "import time; time.sleep(6)\n        return [Deliver(message)]",
        1,
    )
    own.write_text(code, encoding="utf-8")
    slow = serve(protocols=[f"{own}:Careless"])
    (name,) = slow.get("start")["own_files"]
    job = slow.post("search", protocol="matrix", members=4, messages=8, thorough=True)["job"]
    plays = threading.Thread(target=slow.post, args=("run",),
                             kwargs={"text": PLAIN, "protocols": [name]})  # fmt: skip
    plays.start()
    time.sleep(1)
    assert slow.post("stop", job=job)["stopped"]
    assert plays.is_alive()
    plays.join(60)


def test_exercises_are_opened_and_answered(asked: Asked) -> None:
    name = asked.get("start")["exercises"][0]["name"]
    told = asked.post("exercise", name=name)
    assert told["text"] == exercises.find_exercise(name).text
    assert "answer" not in told["questions"][0]
    answer = asked.post("answer", name=name, question=0)
    assert answer["answer"] == exercises.compute_answer(name, 0).answer
    assert answer["facts"][0].keys() == {"subject", "value"}


def test_a_fault_of_the_bench_is_an_answer_too(
    asked: Asked, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails(*asked: Any) -> None:
        raise ZeroDivisionError("oh")

    monkeypatch.setitem(HANDLERS, "compare", fails)
    status, body, _ = asked.post_raw("run", json.dumps({"text": TEXT}).encode())
    assert status == 500
    assert "ZeroDivisionError" in json.loads(body)["error"]
    assert "ZeroDivisionError" in capsys.readouterr().err


@pytest.fixture
def files(tmp_path: Path) -> Path:
    from tests.lab.play.test_search import OWN as CODE

    for name in ("own", "other"):
        seen = f"import pathlib; pathlib.Path({str(tmp_path / (name + '.seen'))!r}).touch()\n"
        (tmp_path / f"{name}.py").write_text(CODE + seen, encoding="utf-8")
    return tmp_path


def test_no_file_named_by_a_request_is_loaded(serve: Serve, files: Path) -> None:
    asked = serve(protocols=[f"{files}/own.py:Careless"])
    (own,) = asked.get("start")["own_files"]
    assert asked.post("run", text=PLAIN, protocols=[own, "fifo"])["runs"][0]["error"] is None
    assert (files / "own.seen").exists()
    other = own.replace("own.py", "other.py")
    named = PLAIN.replace("fifo", other, 1)
    for name, said in (
        ("run", {"text": PLAIN, "protocols": [other]}),
        ("run", {"text": named}),
        ("run", {"text": named, "protocols": ["fifo"]}),
        ("run", {"text": PLAIN, "protocols": [f"{other} k=1"]}),
        ("run", {"text": PLAIN, "protocols": [f"fifo\u2028{other}"]}),
        ("run", {"text": PLAIN, "protocols": [f" {other.replace('other', './other')}"]}),
        ("run", {"text": PLAIN, "protocols": [own.replace("Careless", "Stubborn")]}),
        ("run", {"text": PLAIN, "protocols": ["a\0b.py:X"]}),
        ("run", {"text": PLAIN, "protocols": ["x" * 5_000 + ".py:X"]}),
        ("edit", {"text": PLAIN, "edit": {"kind": "setup", "line": f"protocol {other}"}}),
        ("edit", {"text": named, "edit": {"kind": "arrive-all"}}),
        ("edit", {"text": named, "edit": {"kind": "fresh", "members": ["A"]}}),
        ("cut", {"text": PLAIN, "protocol": other, "counts": {}}),
        ("text", {"text": named}),
        ("search", {"protocol": other}),
    ):
        told = asked.post_rejected(name, **said)
        assert "was not named at start" in told["error"] or ("option" in told["error"])
    assert not (files / "other.seen").exists()
    link = files / "link.py"
    link.symlink_to(files / "own.py")
    linked = own.replace("own.py", "link.py")
    assert asked.post("run", text=PLAIN, protocols=[linked])["runs"][0]["error"] is None


def test_a_file_of_the_scenario_is_found_beside_it_and_watched(serve: Serve, files: Path) -> None:
    scene = files / "x.scenario"
    text = "protocol own.py:Careless\nmembers A B\n\nsend A m\narrive B m\n"
    scene.write_text(text, encoding="utf-8")
    asked = serve(text, scene, ["fifo", f"{files}/other.py:Careless"])
    told = asked.get("start")
    assert told["protocols"] == ["fifo", "other.py:Careless"]
    assert told["own_files"] == ["own.py:Careless", "other.py:Careless"]
    assert told["path"] == str(scene)
    runs = asked.post("run", text=text, protocols=told["own_files"])["runs"]
    assert [run["error"] for run in runs] == [None, None]
    version = asked.ask("GET", asked.word + "version")[1]
    time.sleep(0.02)
    changed = (files / "own.py").read_text("utf-8").replace("Deliver(message)", "")
    (files / "own.py").write_text(changed, encoding="utf-8")
    assert asked.ask("GET", asked.word + "version")[1] != version
    marks = asked.post("run", text=text)["runs"][0]["marks"]
    assert [mark["kind"] for mark in marks] == ["send"]


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("does", "says"),
    [
        ("import os; os._exit(3)", "ended its process (exit code 3)"),
        ("raise SystemExit(0)", "SystemExit"),
        ("while True: pass", "did not return within"),
    ],
)
def test_whatever_an_own_class_does_the_bench_goes_on(
    serve: Serve, files: Path, does: str, says: str
) -> None:
    own = files / "own.py"
    code = own.read_text("utf-8").replace("return [Deliver(message)]", does, 1)
    own.write_text(code, encoding="utf-8")
    asked = serve(protocols=[f"{own}:Careless"])
    (name,) = asked.get("start")["own_files"]
    runs = asked.post("run", text=PLAIN, protocols=["bss", name])["runs"]
    assert (runs[0]["error"], runs[1]["own_file"]) == (None, True)
    assert says in runs[1]["error"]["message"]
    edit = {"kind": "add", "at": 2, "line": "tick 1"}
    told = asked.post("edit", text=PLAIN, protocols=[name, "bss"], edit=edit)
    assert [one["text"] for one in told["commands"]][2:] == ["tick 1"]
    assert says in told["runs"][0]["error"]["message"]
    own.write_text(code.replace(does, "return [Deliver(message)]"), encoding="utf-8")
    assert asked.post("run", text=PLAIN, protocols=[name, "fifo"])["runs"][0]["error"] is None
    edit = {"kind": "remove", "command": 1}
    assert len(asked.post("edit", text=PLAIN, protocols=[name], edit=edit)["commands"]) == 1
    told = asked.post("cut", text=PLAIN, protocol=name, counts={"B": 1})
    assert told["consistent"] is False
    owned = PLAIN.replace("fifo", name, 1)
    assert "= B delivers m" in asked.post("text", text=owned)["text"]


def test_of_several_files_the_one_that_ends_the_process_is_told(serve: Serve, files: Path) -> None:
    own = files / "own.py"
    code = own.read_text("utf-8").replace("return [Deliver(message)]", "import os; os._exit(4)", 1)
    own.write_text(code, encoding="utf-8")
    asked = serve(protocols=[f"{files}/other.py:Careless", f"{own}:Careless"])
    names = asked.get("start")["own_files"]
    runs = asked.post("run", text=PLAIN, protocols=[*names, "fifo"])["runs"]
    assert [run["error"] is None for run in runs] == [True, False, True]
    assert "(exit code 4)" in runs[1]["error"]["message"]
    move = {"kind": "move", "command": 1, "to": 2}
    told = asked.post_rejected("edit", text=PLAIN, protocols=[names[1]], edit=move)
    assert "(exit code 4)" in told["error"]


@pytest.mark.slow
def test_a_class_that_catches_what_ends_it_is_given_up(
    serve: Serve, files: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    asked = serve(protocols=[f"{files}/own.py:Stubborn"])
    (name,) = asked.get("start")["own_files"]
    (run,) = asked.post("run", text=PLAIN, protocols=[name])["runs"]
    assert "did not return and caught the timeout" in run["error"]["message"]
    assert "own.py, line" in capfd.readouterr().err
    assert asked.post("run", text=PLAIN, protocols=["fifo"])["runs"][0]["error"] is None


def test_what_it_is_started_with_is_looked_at() -> None:
    with pytest.raises(ScenarioError, match="unknown command"):
        Opened("dance\n")
    with pytest.raises(InputError, match="unknown exercise 'none'"):
        Opened(exercise="none")
    assert Opened(exercise="bss-example").protocols == list(
        exercises.find_exercise("bss-example").protocols
    )
    assert Opened(exercise="bss-example", protocols=["idr"]).protocols == ["idr"]
