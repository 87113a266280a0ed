"""Global states of a trace, against the oracle's cuts and against all states."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from antecede.cli.traces.cut import split_words
from antecede.core.oracle.cuts import Cuts
from antecede.errors import InputError, LimitError
from antecede.tables.causality.global_states import States
from antecede.tables.causality.predicates import definitely, possibly
from antecede.tables.causality.queries import Causality
from antecede.tables.trace.schema import DELIVER, RECEIVE, SEND, Event
from tests.core.oracle.executions import executions
from tests.tables.causality.test_queries import add_clocks, follows, write_table
from tests.tables.conftest import Command
from tests.tables.events import clocked, moves, table_of

Cut = dict[str, int]


def tells(rows: Sequence[Event]) -> bool:
    kinds = {row.kind for row in rows}
    return SEND in kinds and bool(kinds & {RECEIVE, DELIVER})


def cuts_of(lengths: Cut) -> Iterator[Cut]:
    for places in product(*(range(length + 1) for length in lengths.values())):
        yield dict(zip(lengths, places, strict=True))


def below(one: Cut, other: Cut) -> bool:
    return all(one[name] <= other[name] for name in one)


@given(executions(steps=16), st.data())
def test_cuts_are_what_the_oracle_says(rows: list[Event], data: st.DataObject) -> None:
    assume(tells(rows))
    states, oracle = States(Causality(table_of(rows))), Cuts(rows)
    assert states.length == oracle.length
    cut = {name: data.draw(st.integers(0, last)) for name, last in states.length.items()}
    verdict = states.cut(cut)
    assert verdict.consistent == oracle.consistent(cut)
    assert verdict.greatest == oracle.greatest_consistent(cut)
    above = [one for one in cuts_of(states.length) if below(cut, one) and oracle.consistent(one)]
    assert verdict.least == min(above, key=lambda one: sum(one.values()))
    for crossing in verdict.proof:
        assert crossing.effect.position <= cut[crossing.effect.member]
        assert crossing.cause.position > cut[crossing.cause.member]


@given(executions(steps=16), st.data())
def test_channels_hold_what_arrives_outside(rows: list[Event], data: st.DataObject) -> None:
    assume(tells(rows))
    states, oracle = States(Causality(table_of(rows))), Cuts(rows)
    cut = {name: data.draw(st.integers(0, last)) for name, last in states.length.items()}
    ever = set(oracle.received)
    expected = {
        (channel.source, channel.target): {one for one in ids if (one, channel.target) in ever}
        for channel, ids in oracle.in_channels(cut).items()
    }
    verdict = states.cut(cut)
    found = {(one.source, one.target): set(one.ids) for one in verdict.channels}
    assert found == {ends: ids for ends, ids in expected.items() if ids}
    arrived = {message for message, _ in ever}
    inside = [one for one, (sender, at) in oracle.sent.items() if at <= cut[sender]]
    assert verdict.nowhere == sum(one not in arrived for one in inside)


@given(executions(steps=14), st.data())
def test_clocks_make_the_same_states(rows: list[Event], data: st.DataObject) -> None:
    assume(tells(rows))
    told, by_clocks = (States(Causality(table_of(some))) for some in (rows, add_clocks(rows)))
    assert told.length == by_clocks.length
    cut = {name: data.draw(st.integers(0, last)) for name, last in told.length.items()}
    one, other = told.cut(cut), by_clocks.cut(cut)
    assert (one.consistent, one.greatest, one.least) == (
        other.consistent,
        other.greatest,
        other.least,
    )


@given(executions(steps=14), st.data())
def test_recovery_ends_at_the_greatest_state_made_of_checkpoints(
    rows: list[Event], data: st.DataObject
) -> None:
    assume(tells(rows))
    states, oracle = States(Causality(table_of(rows))), Cuts(rows)
    saved = {
        name: data.draw(st.lists(st.integers(0, last), max_size=3), label=name)
        for name, last in states.length.items()
    }
    found = states.recovery(saved)
    lines = [
        line
        for places in product(*({0, *of} for of in saved.values()))
        if oracle.consistent(line := dict(zip(saved, places, strict=True)))
    ]
    assert found.line == max(lines, key=lambda line: sum(line.values()))
    line = dict(found.begin)
    for step in found.steps:  # each step is forced, and in order
        assert line[step.member] == step.start >= step.why.effect.position > step.end
        assert line[step.why.cause.member] < step.why.cause.position
        line[step.member] = step.end
    assert line == found.line


def ways_avoid(rows: Sequence[Event], lengths: Cut, oracle: Cuts, text: str) -> bool:
    """Return whether some path to the last state avoids a predicate, by trying all paths."""
    names = list(lengths)
    last = tuple(lengths.values())

    def holds(state: tuple[int, ...]) -> bool:
        return bool(eval(text, {}, dict(zip(names, state, strict=True))))  # our own text

    level = {(0,) * len(names)} if not holds((0,) * len(names)) else set()
    while level:
        if last in level:
            return True
        further = {
            (*state[:k], state[k] + 1, *state[k + 1 :])
            for state in level
            for k in range(len(names))
            if state[k] < last[k]
        }
        level = {
            one
            for one in further
            if oracle.consistent(dict(zip(names, one, strict=True))) and not holds(one)
        }
    return False


@given(executions(steps=12), st.sampled_from("PQR"), st.integers(0, 4), st.integers(0, 4))
def test_possibly_and_definitely(rows: list[Event], name: str, some: int, others: int) -> None:
    assume(tells(rows))
    states, oracle = States(Causality(table_of(rows))), Cuts(rows)
    assume({"P", "Q", name} <= set(states.members))
    text = f"P >= {some} and not {name} == {others} or Q > {others}"
    consistent = [one for one in cuts_of(states.length) if oracle.consistent(one)]
    expected = any(eval(text, {}, dict(one)) for one in consistent)
    found = possibly(states, text)
    assert found.holds == expected
    if found.witness is not None:
        assert oracle.consistent(found.witness)
        assert eval(text, {}, dict(found.witness))
    assert found.states <= len(consistent)
    surely = definitely(states, text)
    assert surely.holds == (not ways_avoid(rows, states.length, oracle, text))
    assert (surely.witness is None) == surely.holds


def test_what_events_say_is_part_of_predicates() -> None:
    rows = [
        Event(kind=SEND, id="a", member="P", text="lock granted"),
        Event(kind=SEND, id="b", member="P", text="released"),
        Event(kind=SEND, id="c", member="b-1", text="granted, too"),
        Event(kind=DELIVER, id="b", member="b-1"),
    ]
    states = States(Causality(table_of(rows)))
    both = "'granted' in P and 'granted' in 'b-1'"
    assert possibly(states, both).witness == {"P": 1, "b-1": 1}
    assert not definitely(states, both).holds
    assert definitely(states, "'granted' in P or 'released' in P").holds
    assert not possibly(states, "'granted' not in P and P == 1").holds
    assert not possibly(states, "'never' in P").holds


def test_what_no_event_says_is_not_asked_for() -> None:
    states = States(Causality(table_of(moves("P!vote Q.vote"))))
    assert possibly(states, "'vo' in Q").holds  # by its id
    with pytest.raises(InputError, match=r"no event .* has a text, and no id of Q contains 'paid'"):
        possibly(states, "P == 1 and 'paid' in Q")
    with pytest.raises(InputError, match="--text COLUMN"):
        definitely(states, "'paid' not in P")


def test_a_column_of_a_table_says_what_happened(tmp_path: Path, command: Command) -> None:
    path = tmp_path / "orders.csv"
    path.write_text("id,host,cause,what\no1,shop,,order placed\np1,pay,o1,order paid\n")
    paid = ("cut", path, "--possibly", "'paid' in pay and shop == 1")
    assert "--text COLUMN" in command(*paid).refused
    first, second = command(*paid, "--text", "what").out.splitlines()[-2:]
    assert first.endswith("yes, at pay=1 shop=1 (3 global states explored)")
    assert second == "Causality by declared causes"
    ask = ("ask", path, "--text", "what", "future")
    assert "the texts of these events contain it: o1" in command(*ask, "placed").refused
    assert "order paid" in command(*ask, "o1").out
    path.write_text(path.read_text().replace("what", "message"))  # known by its name
    assert "order placed" in command("ask", path, "past", "p1").out


def test_positions_may_stand_behind_options(
    tmp_path: Path, command: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "log.csv"
    path.write_text("id,host,cause\na,P,\nb,Q,a\n")
    said = set()
    for words in (
        [str(path), "P=1", "--causality", "causes"],
        [str(path), "--causality", "causes", "P=1"],
        ["--causality", "causes", str(path), "P=1"],
        [str(path), "--causality", "causes", "P=1", "--limit", "3"],
    ):
        said.add(command("cut", *words)[:2])
    ((code, _),) = said
    assert code == 0
    assert '"Q": 0' in command("cut", path, "--causality", "causes", "P=1", "--json", "Q=0").out
    with pytest.raises(SystemExit):
        command("cut", path, "--causality", "causes", "P=1", "--nonsense")
    assert "unrecognized arguments: --nonsense" in capsys.readouterr().err


@pytest.mark.parametrize(
    "text",
    [
        *("", "P", "P >= ", "P >= 'x'", "X > 1", "P > 1 > 0", "__import__('os').system('true')"),
        *("P.n > 1", "[P > 1]", "P > 1.5", "P > True", "1 in P", "P is 1", "(lambda: 1)() > 2"),
        "not " * 100_000 + "P > 1",
    ],
)
def test_what_is_no_predicate_is_refused(text: str) -> None:
    with pytest.raises(InputError):
        possibly(States(Causality(table_of(moves("P!a Q.a")))), text)


def test_a_large_lattice_says_so() -> None:
    rows = [Event(kind=SEND, id=f"{m}{k}", member=m) for m in "abcdef" for k in range(9)]
    rows.append(Event(kind=DELIVER, id="a0", member="b"))
    with pytest.raises(LimitError, match="more than 1,000 global states"):
        possibly(States(Causality(table_of(rows))), "a > 99", max_states=1000)


# -- what is refused -------------------------------------------------------------------------------


def test_members_and_positions_that_are_not_there() -> None:
    states = States(Causality(table_of(moves("P!a Q.a"))))
    for cut, why in (
        ({"X": 1}, "unknown member X; choose from P, Q"),
        ({"P": 2}, "P=2: the last position is 1"),
        ({"P": -1}, "a whole number"),
    ):
        with pytest.raises(InputError, match=why):
            states.cut(cut)


def test_states_need_members_and_one_run() -> None:
    with pytest.raises(InputError, match="no event has a member"):
        States(Causality(table_of([Event(id="a"), Event(id="b", causes=("a",))])))
    rows = [Event(id="a", member="P", run=run) for run in "xy"]
    asked = Causality(table_of(rows), unproven=True)
    with pytest.raises(InputError, match=r"2 runs: choose one \(x, y\)"):
        States(asked)
    assert States(asked, "y").length == {"P": 1}
    with pytest.raises(InputError, match="unknown run z"):
        States(asked, "z")


def test_a_member_whose_rows_go_against_its_causes_has_no_states() -> None:
    rows = [Event(id="a", member="P", causes=("b",)), Event(id="b", member="P")]
    with pytest.raises(InputError, match="is listed after its own effect"):
        States(Causality(table_of(rows)))


def test_declared_causes_with_the_order_of_rows() -> None:
    rows = [
        Event(id="a", member="P"),
        Event(id="b", member="P"),
        Event(id="c", member="Q", causes=("b",)),
    ]
    verdict = States(Causality(table_of(rows))).cut({"P": 1, "Q": 1})
    assert (verdict.consistent, verdict.greatest, verdict.least) == (
        False,
        {"P": 1, "Q": 0},
        {"P": 2, "Q": 1},
    )


@given(executions(steps=12))
def test_what_each_event_waits_for(rows: list[Event]) -> None:
    assume(tells(rows))
    states, direct = States(Causality(table_of(rows))), follows(rows)
    past: dict[int, set[int]] = {}
    for k in range(len(rows)):
        past[k] = {k}.union(*(past[j] for j in direct[k]))
        needs = [sum(rows[j].member == m for j in past[k]) for m in states.members]
        # These pasts, the event and its member's events are all.
        own = states.members.index(str(rows[k].member))
        waits = [(own, needs[own] - 1), *states.find_awaited(k)]
        heads = [states.rows_by_member[member][count - 1] for member, count in waits if count]
        assert {k}.union(*(past[row] for row in heads)) == past[k]


# -- events without a member, and phantom events ------------------------------------------------


def is_consistent(rows: Sequence[Event], cut: Cut) -> bool:
    """Return whether a cut of events with declared causes is consistent, from plain sets."""
    number: Cut = {}
    position, direct = [], []
    last: Cut = {}
    for k, row in enumerate(rows):
        direct.append({j for j in range(len(rows)) if rows[j].id in row.causes})
        name = row.member
        position.append(0)
        if name is not None:
            position[k] = number[name] = number.get(name, 0) + 1
            direct[k] |= {last[name]} if name in last else set()
            last[name] = k
    inside = {
        k for k, row in enumerate(rows) if row.member and position[k] <= cut.get(row.member, 0)
    }
    reached, left = set[int](), list(inside)
    while left:
        for cause in direct[left.pop()] - reached:
            reached.add(cause)
            left.append(cause)
    return all(rows[k].member is None or k in inside for k in reached)


@st.composite
def draw_events(draw: st.DrawFn) -> list[Event]:
    """Draw events of members and of none, each with causes among earlier ones."""
    rows: list[Event] = []
    for k in range(draw(st.integers(2, 9))):
        parents = draw(st.sets(st.sampled_from(range(k)), max_size=3)) if k else set[int]()
        member = draw(st.sampled_from(["P", "Q", None]))
        rows.append(Event(id=f"e{k}", member=member, causes=tuple(f"e{j}" for j in parents)))
    return rows


@given(draw_events(), st.data())
def test_what_goes_by_way_of_events_without_a_member_counts(
    rows: list[Event], data: st.DataObject
) -> None:
    assume(any(row.member for row in rows))
    states = States(Causality(table_of(rows), by="causes", unproven=True))
    consistent = [one for one in cuts_of(states.length) if is_consistent(rows, one)]
    cut = {name: data.draw(st.integers(0, last)) for name, last in states.length.items()}
    verdict = states.cut(cut)
    assert verdict.consistent == (cut in consistent)
    assert verdict.greatest == max(
        (one for one in consistent if below(one, cut)), key=lambda one: sum(one.values())
    )
    assert verdict.least == min(
        (one for one in consistent if below(cut, one)), key=lambda one: sum(one.values())
    )
    for crossing in verdict.proof:
        assert crossing.effect.position <= cut[crossing.effect.member]
        assert crossing.cause.position > cut[crossing.cause.member]
    name = data.draw(st.sampled_from(states.members))
    wanted = [one for one in consistent if one[name] == cut[name]]
    text = " and ".join(f"{one} == {at}" for one, at in cut.items())
    assert possibly(states, text).holds == (cut in wanted)


def test_a_cause_by_way_of_an_event_without_a_member_is_the_proof() -> None:
    rows = [
        Event(id="a", member="P"),
        Event(id="x", causes=("a",)),
        Event(id="y", causes=("x",)),
        Event(id="b", member="Q", causes=("y",)),
    ]
    states = States(Causality(table_of(rows), by="causes"))
    assert "2 events without a member" in states.notes[-1]
    verdict = states.cut({"Q": 1})
    assert [str(one.cause) for one in verdict.proof] == ["a (P at 1)"]
    assert verdict.channels == ()
    assert (verdict.greatest, verdict.least) == ({"P": 0, "Q": 0}, {"P": 1, "Q": 1})
    assert states.recovery({"P": [0], "Q": [1]}).line == {"P": 0, "Q": 0}
    assert not possibly(states, "P == 0 and Q == 1").holds


def test_what_clocks_count_and_nobody_wrote_down() -> None:
    rows = [
        clocked("a", "P", {"P": 1}),
        clocked("b", "Q", {"Q": 1, "P": 3}),
        clocked("c", "Q", {"Q": 2, "P": 3}),
        clocked("d", "P", {"P": 5}),
        clocked("e", "R", {"R": 1, "Q": 2, "P": 3}),
        clocked("f", "R", {"R": 2, "Q": 2, "P": 9}),
    ]
    states = States(Causality(table_of(rows)))
    verdict = states.cut({"P": 2, "Q": 2, "R": 1})
    told = [f"{one.effect} follows {one.cause}" for one in verdict.proof]
    assert told == ["b (Q at 1) follows a phantom event (P at 3)"]
    assert verdict.greatest == {"P": 1, "Q": 0, "R": 0}
    assert verdict.least == {"P": 3, "Q": 2, "R": 1}
    assert states.cut({"P": 3, "Q": 1}).consistent
    assert states.cut({"P": 4, "Q": 1, "R": 0}).greatest == {"P": 3, "Q": 1, "R": 0}
    assert states.cut({"P": 5, "Q": 2, "R": 2}).consistent  # nothing follows the last one
    line = states.recovery({"P": [2], "Q": [1, 2]}).line
    assert line == {"P": 2, "Q": 0, "R": 0}


@pytest.mark.slow
def test_members_by_the_thousand_need_no_table_of_all() -> None:
    rows = [
        Event(id=f"e{k}", member=f"m{k}", causes=(f"e{k - 1}",) if k else ()) for k in range(20_000)
    ]
    found = possibly(States(Causality(table_of(rows), by="causes")), "m5 >= 1")
    assert found.witness is not None
    assert sum(found.witness.values()) == 6


# -- the command -----------------------------------------------------------------------------------


def test_words_are_paths_and_positions(tmp_path: Path) -> None:
    assert split_words(["p", "a=1", "b=c=2"]) == (["p"], {"a": 1, "b=c": 2})
    folder = tmp_path / "key=1"
    folder.mkdir()
    assert split_words(["p", str(folder), "a=1"]) == (["p", str(folder)], {"a": 1})
    for words in (["p", "a=x"], ["p", "a=1", "a=2"], ["p", "a=²"]):
        with pytest.raises(InputError):
            split_words(words)


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ("P=1 Q=1", 1, "P=1 Q=1 is not consistent, by send and receive events"),
        ("P=1 Q=1", 1, "b (Q at 1) follows b (P at 2)"),
        ("P=1 Q=1", 1, "greatest consistent cut within it: P=1 (1 other member at 0)"),
        ("P=1 Q=1", 1, "least consistent cut around it: P=2 Q=1"),
        ("P=2", 0, "P to Q: b"),
        ("P=2", 0, "sent inside, without an arrival in the trace: 1 message"),
        ("", 2, ""),
        ("Q=7", 2, ""),
        ("Q=1 --max-states 5", 2, ""),  # no effect without a predicate
        ("--possibly P==2_and_Q==0", 0, ""),
        ("--definitely Q==0_and_P==2", 0, ""),
        ("--possibly P==1_and_Q==1", 1, ""),
    ],
)
def test_the_command(words: str, code: int, said: str, tmp_path: Path, command: Command) -> None:
    path = write_table(tmp_path, moves("P!a P!b Q.b"))
    found = command("cut", path, *(word.replace("_", " ") for word in words.split()))
    assert found.code == code
    assert said in found.out


def test_the_command_reads_checkpoints_and_prints_json(tmp_path: Path, command: Command) -> None:
    path, points = write_table(tmp_path, moves("P!a P!b Q.b")), tmp_path / "points.csv"
    cut = command("cut", path, "P=1", "Q=1", "--json").json["cut"]
    assert cut["proof"][0]["cause"] == {"member": "P", "position": 2, "id": "b"}
    assert cut["consistent"] is False
    points.write_text("member,position\nP,1\nQ,1\n")
    text = command("cut", path, "--checkpoints", points).out
    assert "Q rolls back from 1 to 0: b (Q at 1) follows b (P at 2), which is lost" in text
    assert "recovery line: P=1 (1 other member at 0)" in text
    points.write_text("P,1\nQ;1\n")
    found = command("cut", path, "--checkpoints", points)
    assert found.code == 2
    assert "points.csv" in found.err
    points.write_bytes(b"\xef\xbb\xbfP,1\r\n")  # begins with a byte order mark
    assert "Last checkpoints: P=1" in command("cut", path, "--checkpoints", points).out
    for option in ("--possibly", "--definitely", "--checkpoints"):  # empty, but given
        found = command("cut", path, "P=1", option, "")
        assert found.code == 2
    assert "cannot be read" in found.err


def test_a_message_is_under_way_for_ever_whatever_its_sender_does_with_it() -> None:
    for rows in ("P!a P.a P!b Q.b", "P!a P!b Q.b P.a", "P!a P!a P!b Q.b"):
        states = States(Causality(table_of(moves(rows))))
        assert states.cut(states.length).nowhere == 1
    nowhere_said = [*moves("P!a"), Event(kind=DELIVER, id="a"), *moves("P!b Q.b")]
    states = States(Causality(table_of(nowhere_said)))
    assert states.cut(states.length).nowhere == 0


def test_a_mark_of_nobody_is_no_cut_of_somebody() -> None:
    rows = [
        Event(kind=SEND, id="a", member="P", text="snapshot 1"),
        Event(kind=DELIVER, id="a", text="snapshot 1"),
        Event(kind=DELIVER, id="a", member="Q"),
    ]
    states = States(Causality(table_of(rows)))
    assert states.find_marked_cut("snapshot 1") == {"P": 1}
    with pytest.raises(InputError, match="no event contains the text"):
        states.find_marked_cut("snapshot \udcff")
