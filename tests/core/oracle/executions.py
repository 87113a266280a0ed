"""Random executions of a few members, as rows of a trace."""

from __future__ import annotations

from hypothesis import strategies as st

from antecede.tables.trace.schema import DELIVER, RECEIVE, SEND, Event


@st.composite
def executions(draw: st.DrawFn, members: int = 3, steps: int = 14) -> list[Event]:
    """Return rows of sends, of copies that arrive in any order, and of deliveries in any order.

    Copies may stay on their way, arrive twice, and wait for ever.
    """
    names = "PQR"[:members]
    rows: list[Event] = []
    flying: list[tuple[str, str]] = []
    here: list[tuple[str, str]] = []
    for number in range(draw(st.integers(0, steps))):
        what = draw(st.sampled_from((SEND, RECEIVE, DELIVER)))
        if what == SEND:
            sender = draw(st.sampled_from(names))
            rows.append(Event(kind=SEND, id=f"m{number}", member=sender))
            flying += [(f"m{number}", name) for name in names if name != sender]
        elif what == RECEIVE and flying:
            copy = draw(st.sampled_from(flying))
            if draw(st.integers(0, 4)):  # else it comes again
                flying.remove(copy)
            here.append(copy)
            rows.append(Event(kind=RECEIVE, id=copy[0], member=copy[1]))
        elif what == DELIVER and here:
            copy = draw(st.sampled_from(here))
            here.remove(copy)
            rows.append(Event(kind=DELIVER, id=copy[0], member=copy[1]))
    return rows
