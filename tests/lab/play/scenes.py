"""Random scenarios that flat protocols can run: only copies in flight arrive."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

FLAT = ("unordered", "fifo", "bss", "idr", "ds", "ses", "matrix", "sent", "sb", "total")
JOINING = ("unordered", "fifo", "idr", "sb")
"""Protocols that support join and leave."""


class Making:
    """Growing scenario; copies in flight are those of an order that sends to all."""

    def __init__(self, members: list[str]) -> None:
        self.members, self.present = members, list(members)
        self.flying: list[tuple[str, str]] = []
        self.arrived: list[tuple[str, str]] = []
        self.sent: list[str] = []
        self.lines: list[str] = []

    def send(self, at: str, after: list[str]) -> None:
        label = f"m{len(self.sent) + 1}"
        known = [one for one in after if one in self.sent and (at, one) in self.arrived]
        self.lines.append(f"send {at} {label}{' after ' if known else ''}{' '.join(known)}")
        self.sent.append(label)
        self.flying += [(other, label) for other in self.present if other != at]

    def text(self, protocol: str = "bss", comments: bool = False) -> str:
        """Return the scenario text; `comments`: one before every other action."""
        lines = [
            f"# note {k}\n{line}" if comments and k % 2 else line
            for k, line in enumerate(self.lines)
        ]
        head = f"title made at random\nprotocol {protocol}\nmembers {' '.join(self.members)}\n\n"
        return head + "".join(f"{line}\n" for line in lines)


@st.composite
def scenes(draw: Any, most: int = 16, *, moving: bool = False, lossy: bool = False) -> Making:
    """Draw a scenario; `moving`: with joins and leaves, `lossy`: with losses and repetitions."""
    made = Making([f"P{k + 1}" for k in range(draw(st.integers(2, 4)))])
    for number in range(draw(st.integers(0, most))):
        kinds = ["send"] + ["arrive"] * 3 * bool(made.flying)
        kinds += ["lose"] * (lossy and bool(made.flying)) + ["again"] * (
            lossy and bool(made.arrived)
        )
        kinds += ["join", "leave"] * (moving and len(made.present) > 2)
        kind = draw(st.sampled_from(kinds))
        if kind == "send":
            answered = made.sent[-2:] if draw(st.booleans()) else []
            made.send(draw(st.sampled_from(made.present)), answered)
        elif kind in ("arrive", "lose"):
            at, label = made.flying.pop(draw(st.integers(0, len(made.flying) - 1)))
            made.lines.append(f"{kind} {at} {label}")
            made.arrived += [(at, label)] if kind == "arrive" else []
        elif kind == "again":
            at, label = draw(st.sampled_from(made.arrived))
            made.lines += [f"arrive {at} {label} again"] if at in made.present else []
        elif kind == "join":
            sponsor = draw(st.sampled_from(made.present))
            made.lines.append(f"join N{number} sponsor {sponsor}")
            made.present.append(f"N{number}")
        else:
            at = draw(st.sampled_from(made.present))
            made.lines.append(f"leave {at}")
            made.present.remove(at)
            made.flying = [copy for copy in made.flying if copy[0] != at]
    return made
