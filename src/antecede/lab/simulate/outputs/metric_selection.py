"""Selection of what a run counts beside messages, deliveries and waits."""

from __future__ import annotations

from typing import NamedTuple


class Measures(NamedTuple):
    """What a compiled engine counts; the readable one counts everything.

    Other figures are absent. Cost of each: `python -m bench.simulators`.
    """

    sizes: bool = True
    """Control bytes by the source's accounting, of a hierarchy entropy too."""
    encoded: bool = True
    """Control bytes on the wire."""
    causes: bool = True
    """Deliveries before a cause; in a hierarchy by IDR beside it, so its bytes and Lemma 3 too."""
    ds: bool = True
    """What DS would carry among external peers."""
    storage: bool = True
    """Samples of what members keep and hold back."""


EVERYTHING = Measures()
NOTHING = Measures(False, False, False, False, False)
NOT_ASKED = "not asked for"
