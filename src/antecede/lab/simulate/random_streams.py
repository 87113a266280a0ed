"""Random numbers as a function of their purpose, not of the time of drawing.

Every random choice of a run has a name: the run's seed, a stream (a delay, a loss, ...) and two
numbers (for a delay: message and channel). The random number is a hash of that name. So it does not
depend on the order of events in an engine: all engines, processes and clusters draw the same.

    make_key(seed, stream) = mix(seed * SEED_FACTOR + stream * STREAM_FACTOR)
    draw(key, i, j)        = mix(key + i * I_FACTOR + j * J_FACTOR)       all modulo 2^64

`mix` is the finaliser of SplitMix64 (Steele, Lea, Flood 2014; Stafford's variant 13), a bijection.
Compiled twin: `antecede.lab.simulate.compiled.random_streams`.
"""

from __future__ import annotations

import enum

import numpy as np
import numpy.typing as npt

Words = npt.NDArray[np.uint64]
Ints = npt.NDArray[np.int64]

MASK = (1 << 64) - 1
SEED_FACTOR = 0x9E3779B97F4A7C15
STREAM_FACTOR = 0xD1342543DE82EF95
I_FACTOR = 0xA0761D6478BD642F
J_FACTOR = 0xE7037ED1A0B428DB
MIX_1, MIX_2 = 0xBF58476D1CE4E5B9, 0x94D049BB133111EB


class Stream(enum.IntEnum):
    """Purposes of draws. The numbers are part of every result: never renumber."""

    DELAY = 1  # Of a message's first copy: (message, sender * size + receiver)
    CONTROL_DELAY = 2
    """Of a control message or further copy: (count of these, sender * size + receiver)."""
    LOSS = 3
    CONTROL_LOSS = 4
    DUPLICATE = 5
    DUPLICATE_DELAY = 6
    START = 7  # Start of a peer: (peer, 0)
    INTERVAL = 8  # Between a peer's messages: (peer, its message)
    SENDER = 9
    SEND_TIME = 10
    ADDRESSEE = 11  # (message, address): the smallest draws are addressed
    TOPIC = 12
    SUBSCRIPTION = 13
    CLOCK_OFFSET = 14
    CLOCK_DRIFT = 15
    RESYNC = 16
    REPLY = 17
    SAMPLE = 18
    MARKER_DELAY = 19  # Of a snapshot marker: (count of these, sender * size + receiver)
    MARKER_LOSS = 20


def mix(word: int) -> int:
    """Return the hash of a 64-bit word."""
    word = ((word ^ (word >> 30)) * MIX_1) & MASK
    word = ((word ^ (word >> 27)) * MIX_2) & MASK
    return word ^ (word >> 31)


def make_key(seed: int, stream: Stream) -> int:
    """Return the key of a stream of a run. `seed` is any integer from 0."""
    return mix((seed * SEED_FACTOR + int(stream) * STREAM_FACTOR) & MASK)


def draw(key: int, i: int, j: int = 0) -> int:
    """Return 64 random bits as an integer."""
    return mix((key + i * I_FACTOR + j * J_FACTOR) & MASK)


def draw_unit(key: int, i: int, j: int = 0) -> float:
    """Return a number in [0, 1)."""
    return (draw(key, i, j) >> 11) * 2.0**-53


def draw_array(key: int, i: Ints | int, j: Ints | int = 0) -> Words:
    """Return `draw` of whole arrays (broadcast), as uint64."""
    with np.errstate(over="ignore"):
        first = np.asarray(i).astype(np.uint64) * np.uint64(I_FACTOR)
        second = np.asarray(j).astype(np.uint64) * np.uint64(J_FACTOR)
        word = np.uint64(key) + first + second
        word = (word ^ (word >> np.uint64(30))) * np.uint64(MIX_1)
        word = (word ^ (word >> np.uint64(27))) * np.uint64(MIX_2)
        return np.asarray(word ^ (word >> np.uint64(31)), dtype=np.uint64)


def draw_unit_array(key: int, i: Ints | int, j: Ints | int = 0) -> npt.NDArray[np.float64]:
    """Return `draw_unit` of whole arrays."""
    return (draw_array(key, i, j) >> np.uint64(11)).astype(np.float64) * 2.0**-53
