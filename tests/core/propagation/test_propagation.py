"""Context propagation in headers: forms, blocks, threads, tasks, forks, bounds, invalid headers."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPMessage
from typing import Any

import pytest

from antecede.core.propagation import (
    CAUSES,
    ID,
    MAX_ID,
    CausalContext,
    ContextPropagator,
    MessageContext,
    read,
    strip_context,
)
from antecede.errors import DecodeError, InputError, LimitError, LocalError


def stamper(service: str = "pay", **options: Any) -> ContextPropagator:
    return ContextPropagator(service, incarnation="one", **options)


def stamped(name: str, *causes: str) -> dict[str, str]:
    return {ID: name, CAUSES: ",".join(causes)}


def test_pairs_give_bytes_and_a_mapping_gives_text() -> None:
    stamp = stamper()
    assert stamp.make_headers() == [(ID, b"pay:one:1"), (CAUSES, b"")]
    assert stamp.make_headers([("k", b"v")]) == [
        ("k", b"v"),
        (ID, b"pay:one:2"),
        (CAUSES, b"pay:one:1"),
    ]
    with stamp.handle(stamped("b:x:1")):
        assert stamp.make_headers({"Host": "here"}) == {
            "Host": "here",
            ID: "pay:one:3",
            CAUSES: "pay:one:2,b:x:1",
        }


def test_reads_what_transports_give() -> None:
    wanted = MessageContext("a:1:1", ("b:1:1", "c:1:2"))
    http = HTTPMessage()
    http["Antecede-Id"], http["ANTECEDE-CAUSES"] = " a:1:1 ", "b:1:1,c:1:2"
    shapes: list[Any] = [
        stamped(*wanted[:1], *wanted.causes),
        [(ID, b"a:1:1"), (CAUSES, b"b:1:1,c:1:2"), ("other", None)],
        [(ID, b"a:1:1"), (CAUSES, "b:1:1,c:1:2"), (ID, "a:1:1")],
        http,
    ]
    for headers in shapes:
        assert read(headers) == wanted
    assert read(None) is None
    assert read({}) is None
    assert read([("other", b"\xff")]) is None


@pytest.mark.parametrize(
    ("headers", "said"),
    [
        ({ID: "a"}, "without antecede-causes"),
        ({CAUSES: "a"}, "expected both or none"),
        ([(ID, b"a"), (ID, b"b"), (CAUSES, b"")], "duplicate"),
        (stamped("a b"), "not a valid id"),
        (stamped(""), "not a valid id"),
        (stamped("a", "b", "", "c"), "not a valid id"),
        (stamped("x" * (MAX_ID + 1)), "not a valid id"),
        (stamped("a", "a"), "itself"),
        ([(ID, b"\xff"), (CAUSES, b"")], "not ASCII"),
        ([(ID, None), (CAUSES, b"")], "expected text or bytes"),
        ([(ID, 7), (CAUSES, b"")], "expected text or bytes"),
    ],
)
def test_headers_that_are_no_stamp_are_refused_or_counted(headers: Any, said: str) -> None:
    strict, counting = stamper(), stamper(on_bad="count")
    with pytest.raises(DecodeError, match=said):
        strict.receive(headers)
    with pytest.raises(DecodeError, match=said), strict.handle(headers):
        pass
    assert strict.stats()[:4] == (0, 0, 0, 2)
    assert strict.past == CausalContext()
    assert counting.receive(headers) is None
    assert counting.stats().bad == 1
    assert counting.stats().last_error == strict.stats().last_error
    assert counting.create_message().causes == ()


def test_what_is_not_stamped_is_counted() -> None:
    stamp = stamper()
    with stamp.handle([("k", b"v")]) as got:
        assert got is None
        stamp.receive(stamped("a"))
    assert stamp.stats() == (0, 1, 1, 0, None)


def test_headers_of_another_message_are_not_given_out_again() -> None:
    stamp = stamper()
    other = [("K", b"v"), *stamper("other").make_headers()]
    with pytest.raises(LocalError, match="another message"):
        stamp.make_headers(other)
    assert stamp.stats().sent == 0
    assert strip_context(other) == [("K", b"v")]
    assert read(stamp.make_headers(strip_context(other))) == MessageContext("pay:one:1", ())


def test_blocks_at_the_top_do_not_follow_each_other() -> None:
    stamp = stamper()
    with stamp.handle(stamped("a")):
        assert stamp.create_message().causes == ("a",)
        assert stamp.create_message().causes == ("pay:one:1",)
    with stamp.handle(stamped("b")):
        assert stamp.create_message().causes == ("b",)
    assert stamp.create_message().causes == ()
    with stamp.handle(stamped("c")):
        assert stamp.create_message().causes == ("pay:one:4", "c")


def test_a_block_in_a_block_is_the_same_thread_of_control() -> None:
    stamp = stamper()
    with stamp.handle(stamped("a")):
        with stamp.handle(stamped("b")) as inner:
            assert inner == MessageContext("b", ())
            assert stamp.create_message().causes == ("a", "b")
        assert stamp.create_message().causes == ("pay:one:1",)
        with stamp.begin():
            assert stamp.create_message().causes == ()
        assert stamp.create_message().causes == ("pay:one:2",)
    assert stamp.create_message().causes == ()


def test_a_block_ends_where_an_error_ends_it() -> None:
    stamp = stamper()
    with pytest.raises(KeyError), stamp.handle(stamped("a")):
        raise KeyError
    assert stamp.past == CausalContext()
    with stamp.handle(stamped("b")):
        pass
    assert stamp.create_message().causes == ()


def test_causes_of_causes_are_left_out_in_either_order() -> None:
    for names in (("a", "b"), ("b", "a")):
        stamp = stamper()
        for name in names:
            stamp.receive(stamped(name, *("a" if name == "b" else "")))
        assert stamp.create_message().causes == ("b",)
        stamp.receive(stamped("b", "a"))  # once more
        stamp.receive(stamped("pay:one:1", "b"))  # our own comes back
        assert stamp.create_message().causes == ("pay:one:1",)


def test_causes_that_lie_about_each_other_are_kept() -> None:
    stamp = stamper()
    stamp.receive(stamped("a", "b"))
    stamp.join(CausalContext(("b",), ("a",)))
    assert set(stamp.create_message().causes) == {"a", "b"}


def test_the_bound_refuses_and_forgets_nothing() -> None:
    stamp = stamper(max_causes=3)
    for k in range(3):
        stamp.receive(stamped(f"m{k}"))
    with pytest.raises(LimitError, match="max_causes=3"):
        stamp.receive(stamped("m3"))
    with pytest.raises(LimitError):
        stamp.join(CausalContext(("m4",)))
    stamp.receive(stamped("m5", "m0", "m1"))  # takes the place of two
    assert stamp.create_message().causes == ("m2", "m5")
    assert stamp.stats().received == 4
    for k in range(50):
        stamp.receive(stamped(f"n{k}", *(f"x{k}-{j}" for j in range(9))))
        assert len(stamp.past.frontier) <= 3
        assert len(stamp.past.before) <= 3
        stamp.create_message()


def test_threads_have_pasts_of_their_own_and_no_id_twice() -> None:
    stamp = stamper()
    stamp.receive(stamped("main"))
    ready = threading.Barrier(8)
    ids: list[str] = []

    def work(k: int) -> None:
        ready.wait()
        for n in range(200):
            with stamp.handle(stamped(f"t{k}-{n}")):
                sent = stamp.create_message()
                assert sent.causes == (f"t{k}-{n}",)
                ids.append(sent.id)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    assert len(set(ids)) == 1600 == stamp.stats().sent
    assert stamp.create_message().causes == ("main",)


def test_a_past_goes_into_a_thread_and_comes_back() -> None:
    stamp = stamper()

    def work(past: CausalContext) -> CausalContext:
        with stamp.resume(past):
            assert stamp.create_message().causes == ("a",)
            return stamp.past

    with stamp.handle(stamped("a")), ThreadPoolExecutor(1) as pool:
        done = pool.submit(work, stamp.past).result()
        assert stamp.create_message().causes == ("a",)
        stamp.join(done)
        assert stamp.create_message().causes == ("pay:one:2", "pay:one:1")


def test_tasks_fork_and_do_not_disturb_each_other() -> None:
    stamp = stamper()

    async def handle(name: str) -> tuple[str, ...]:
        with stamp.handle(stamped(name)):
            await asyncio.sleep(0)
            child = asyncio.create_task(later(name))
            own = stamp.create_message()
            await asyncio.sleep(0)
            assert await child == (name,)
            assert stamp.create_message().causes == (own.id,)
            return own.causes

    async def later(name: str) -> tuple[str, ...]:
        await asyncio.sleep(0)
        return stamp.create_message().causes

    async def main() -> None:
        names = [f"m{k}" for k in range(50)]
        assert await asyncio.gather(*map(handle, names)) == [(name,) for name in names]

    asyncio.run(main())
    assert stamp.create_message().causes == ()


def _in_child(make: Callable[[], str], answer: Any) -> None:
    try:
        answer.send(make())
    except LocalError as error:
        answer.send(f"refused: {error}")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_process_gives_no_id_twice() -> None:
    context = multiprocessing.get_context("fork")
    for stamp in (ContextPropagator("s"), ContextPropagator("s", incarnation="given")):
        stamp.create_message()
        here, there = context.Pipe()
        child = context.Process(target=_in_child, args=(lambda: stamp.create_message().id, there))  # noqa: B023
        child.start()
        said = here.recv()
        child.join()
        if stamp.incarnation == "given":
            assert said.startswith("refused")
        else:
            assert said.startswith("s:")
            assert stamp.incarnation not in said


def test_names_that_cannot_stand_in_an_id() -> None:
    assert stamper("Zahlung, neu: 1").create_message().id == "Zahlung%2C%20neu%3A%201:one:1"
    assert read(stamper("ä" * 18).make_headers()) is not None
    bad: list[dict[str, Any]] = [
        {"service": ""},
        {"service": "ä" * 40},
        {"service": "s", "incarnation": "a:b"},
        {"service": "s", "max_causes": 0},
        {"service": "s", "max_causes": True},
        {"service": "s", "on_bad": "ignore"},
    ]
    for options in bad:
        with pytest.raises(InputError):
            ContextPropagator(**options)
    assert ContextPropagator("s").create_message() != ContextPropagator("s").create_message()
    with pytest.raises(LocalError, match="expected a context"), stamper().resume(("a",)):  # type: ignore[arg-type]
        pass
    with pytest.raises(LocalError):
        stamper().join(CausalContext(("a,b",)))


def test_the_largest_stamp_is_read_again() -> None:
    longest = ContextPropagator("s" * (MAX_ID - 90), incarnation="i" * 64)
    for _ in range(3):
        assert read(longest.make_headers()) is not None


def test_a_message_that_has_an_id_already_keeps_it() -> None:
    stamp = stamper()
    with stamp.begin():
        stamp.receive(stamped("b:x:1"))
        assert stamp.make_headers({}, id="ann~00000000:7") == stamped("ann~00000000:7", "b:x:1")
        assert stamp.create_message() == MessageContext("pay:one:1", ("ann~00000000:7",)), (
            "numbers have no gaps"
        )
        for wrong in ("pay:one:1", "ann~00000000:7", "a,b", "", "x" * (MAX_ID + 1), 5):
            with pytest.raises(LocalError, match="is not a valid id, or the id of a cause"):
                stamp.create_message(wrong)  # type: ignore[arg-type]
    assert stamp.stats().sent == 2


def test_a_past_beyond_the_bound_is_not_resumed() -> None:
    stamp = stamper(max_causes=2)
    with (
        pytest.raises(LimitError, match="context of 3 messages exceeds max_causes=2"),
        stamp.resume(CausalContext(("a:1", "b:1", "c:1"))),
    ):
        pass
    with stamp.resume(CausalContext(("a:1", "b:1"))):
        assert stamp.create_message().causes == ("a:1", "b:1")
