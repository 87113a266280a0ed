"""Partition of the nightly tests."""

from __future__ import annotations

import argparse
from itertools import chain

import pytest

from tests.conftest import is_in_part, part_of

IDS = [f"tests/test_a.py::test_b[{k}]" for k in range(1000)]


def test_each_test_is_in_one_part() -> None:
    chosen = [[one for one in IDS if is_in_part(one, (k, 12))] for k in range(12)]
    assert sorted(chain.from_iterable(chosen)) == sorted(IDS)
    assert min(map(len, chosen)) > 40
    assert all(is_in_part(one, part_of("0/1")) for one in IDS)


@pytest.mark.parametrize("text", ["", "3", "12/12", "-1/12", "0/0", "a/b", "1/12 "])
def test_a_wrong_part_is_refused(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="is no part"):
        part_of(text)
