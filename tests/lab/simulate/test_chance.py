"""Draws are functions of their names: the same alone, in arrays and compiled."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from antecede.lab.simulate.compiled import random_streams
from antecede.lab.simulate.delays import DISTRIBUTIONS, US, Delay, pick, pick_array
from antecede.lab.simulate.random_streams import (
    Stream,
    draw,
    draw_array,
    draw_unit,
    draw_unit_array,
    make_key,
)
from antecede.tables.kernels.jit import njit

WORDS = st.integers(0, 2**64 - 1)
NUMBERS = st.integers(0, 2**40)


@njit
def _draw(key, i, j):  # type: ignore[no-untyped-def]
    return random_streams.draw(key, i, j)


@njit
def _pick(table, word):  # type: ignore[no-untyped-def]
    return random_streams.pick(table, word)


@given(st.integers(0, 2**70), st.sampled_from(Stream), NUMBERS, NUMBERS)
def test_one_number_a_name_in_every_form(seed: int, stream: Stream, i: int, j: int) -> None:
    named = make_key(seed, stream)
    word = draw(named, i, j)
    assert int(draw_array(named, i, np.array([j]))[0]) == word
    assert int(_draw(np.uint64(named), np.uint64(i), np.uint64(j))) == word
    assert float(draw_unit_array(named, np.array([i]), j)[0]) == draw_unit(named, i, j)
    assert 0 <= draw_unit(named, i, j) < 1


def test_streams_and_seeds_are_told_apart() -> None:
    first = [draw(make_key(seed, stream), 3, 4) for seed in range(50) for stream in Stream]
    assert len(set(first)) == len(first)
    part = draw_unit_array(
        make_key(1, Stream.DELAY), np.arange(1000)[:, None], np.arange(100)[None, :]
    )
    assert abs(part.mean() - 0.5) < 0.01
    assert abs(np.corrcoef(part[:, 0], part[:, 1])[0, 1]) < 0.1


@given(WORDS, st.sampled_from(DISTRIBUTIONS))
def test_one_delay_a_word_in_every_form(word: int, kind: str) -> None:
    low = 0.2 if kind == "constant" else 0.05
    table = Delay(low, 0.2, kind).quantiles()
    there = pick(table, word)
    assert int(pick_array(table, np.array([word], dtype=np.uint64))[0]) == there
    assert int(_pick(table, np.uint64(word))) == there
    assert table[0] <= there <= table[-1]


def test_the_normal_of_000_section_3_2() -> None:
    words = draw_array(make_key(1, Stream.INTERVAL), np.arange(200_000))
    drawn = pick_array(Delay(0.07, 0.09).quantiles(), words) / US
    assert abs(drawn.mean() - 0.08) < 0.0001
    assert abs(drawn.std() - 0.0048) < 0.0001
    assert 0.02 < (drawn == 0.07).mean() < 0.026
    assert 0.02 < (drawn == 0.09).mean() < 0.026


def test_the_variance_of_000_taken_literally() -> None:
    words = draw_array(make_key(1, Stream.DELAY), np.arange(200_000))
    drawn = pick_array(Delay(0.0, 0.05, "variance").quantiles(), words) / US
    assert abs(drawn.mean() - 0.025) < 0.0001
    assert abs(drawn.std() - 12.5**0.5 / 1000) < 0.0001
