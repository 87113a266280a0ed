"""Comparison of two names by the rule of `tables.order.keys.goes_by_value`, on bytes.

Numbers in text (-17, 3.50, 1e+20, inf, nan) are compared by value without parsing, so neither their
size nor their number of digits is limited.
"""

from __future__ import annotations

from antecede.tables.kernels import njit
from antecede.tables.order.stream.kernels.rows import Bits, TieNames

_PLUS, _MINUS, _POINT, _ZERO, _NINE = 43, 45, 46, 48, 57
_E, _CAPITAL_E, _I, _N = 101, 69, 105, 110
_LARGEST = 1 << 40


@njit
def compare_names(names: TieNames, x: int, y: int) -> int:
    """Return -1, 0 or 1: name x is before y, equal, or after it."""
    pool = names.pool
    start, stop = names.ends[x], names.ends[x + 1]
    other, end = names.ends[y], names.ends[y + 1]
    if names.numbers:
        side = _compare_values(pool, start, stop, other, end)
        if side != 0:
            return side
    for offset in range(min(stop - start, end - other)):
        left, right = pool[start + offset], pool[other + offset]
        if left != right:
            return -1 if left < right else 1
    if stop - start == end - other:
        return 0
    return -1 if stop - start < end - other else 1


@njit
def _compare_values(pool: Bits, start: int, stop: int, other: int, end: int) -> int:
    sign, power, digit = _read_number(pool, start, stop)
    its_sign, its_power, its_digit = _read_number(pool, other, end)
    if sign != its_sign:
        return -1 if sign < its_sign else 1
    larger = 0
    if power != its_power:
        larger = -1 if power < its_power else 1
    while larger == 0 and (digit < stop or its_digit < end):
        left, digit = _read_digit(pool, digit, stop)
        right, its_digit = _read_digit(pool, its_digit, end)
        if left != right:
            larger = -1 if left < right else 1
    return -larger if sign < 0 else larger


@njit
def _read_number(pool: Bits, start: int, stop: int) -> tuple[int, int, int]:
    """Return the sign (-1, 0, 1; 2: not a number), the power of ten, and where digits begin.

    The value is 0.d1d2d3... times ten to that power; d1 is not 0.
    """
    sign, at = 1, start
    if at < stop and (pool[at] == _MINUS or pool[at] == _PLUS):
        sign = -1 if pool[at] == _MINUS else 1
        at += 1
    if at < stop and pool[at] == _I:
        return sign, _LARGEST, stop
    if at < stop and pool[at] == _N:
        return 2, 0, stop
    power, first, point, exponent = 0, stop, False, 0
    while at < stop:
        byte = pool[at]
        if byte in (_E, _CAPITAL_E):
            exponent = _read_exponent(pool, at + 1, stop)
            break
        if byte == _POINT:
            point = True
        else:
            if first == stop and byte != _ZERO:
                first = at
            if first == stop:
                power -= 1 if point else 0
            else:
                power += 0 if point else 1
        at += 1
    if first == stop:
        return 0, 0, stop
    return sign, power + exponent, first


@njit
def _read_exponent(pool: Bits, at: int, stop: int) -> int:
    sign, value = 1, 0
    while at < stop:
        if pool[at] == _MINUS:
            sign = -1
        elif pool[at] != _PLUS:
            value = min(value * 10 + pool[at] - _ZERO, _LARGEST // 2)
        at += 1
    return sign * value


@njit
def _read_digit(pool: Bits, at: int, stop: int) -> tuple[int, int]:
    while at < stop:
        byte = pool[at]
        if byte in (_E, _CAPITAL_E):
            return 0, stop
        at += 1
        if _ZERO <= byte <= _NINE:
            return byte - _ZERO, at
    return 0, stop
