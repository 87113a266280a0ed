"""Values that a peer is given: refused at once, and under the names that they were given by."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any, Final

from antecede.errors import LocalError
from antecede.formatting import shown

_NS: Final = 10**9
_NEAR: Final = 0.75
_NUMBERS: Final = {"int": False, "int | None": True}
"""Annotations of numbers -> whether None is one of them."""


def told(name: str) -> str:
    """Return the name by which a program gives a setting: times in seconds."""
    return f"{name[:-3]}_s" if name.endswith("_ns") else name


def check_fields(settings: Any, above_zero: Iterable[str]) -> None:
    """Raise LocalError for what is no number, or no truth value, or below what it can be.

    `settings`: a dataclass; `above_zero`: names of the numbers that 0 is not among.
    """
    positive = {*above_zero}
    for one in fields(settings):
        value = getattr(settings, one.name)
        if one.type == "bool" and not isinstance(value, bool):
            raise LocalError(f"{one.name}= is True or False, not {shown(value)}")
        if one.type not in _NUMBERS or (value is None and _NUMBERS[one.type]):
            continue
        if isinstance(value, bool) or not isinstance(value, int):
            raise LocalError(f"{told(one.name)}= is a whole number, not {shown(value)}")
        if value < 0 or (value == 0 and one.name in positive):
            least = "above 0" if one.name in positive else "0 or more"
            given = f"{value / _NS:g}" if one.name.endswith("_ns") else shown(value)
            raise LocalError(f"{told(one.name)}= is {least}, not {given}")


def check_seconds(name: str, value: object) -> None:
    """Raise LocalError for what is no number of seconds."""
    known = isinstance(value, int | float) and not isinstance(value, bool)
    if not known or not math.isfinite(value):  # type: ignore[arg-type]
        raise LocalError(f"{name}= is a number of seconds, not {shown(value)}")


def check_timeout(value: object) -> None:
    """Raise LocalError for what is no time to wait."""
    check_seconds("timeout_s", value)
    if value < 0:  # type: ignore[operator]
        raise LocalError(f"timeout_s= is 0 or more, not {shown(value)}")


def options_of(options: object) -> dict[str, Any]:
    """Return the options of an order. Raises LocalError for what names none."""
    if options is None:
        return {}
    if not isinstance(options, Mapping) or not all(isinstance(name, str) for name in options):
        raise LocalError(
            f'options= has a value for each name, as in {{"bounds": ...}}, not {shown(options)}'
        )
    return dict(options)


def check_secure(name: str, tls: Any, insecure: object) -> None:
    """Raise LocalError unless a peer of this name has its certificate, or is to go without."""
    if not isinstance(insecure, bool):
        raise LocalError(f"insecure= is True or False, not {shown(insecure)}")
    if tls is None and not insecure:
        raise LocalError(
            "a peer needs tls=Tls(certificate, authority), so that nobody else gets in; "
            "`antecede keys` makes both for a try. insecure=True goes without"
        )
    if tls is None:
        return
    if insecure:
        raise LocalError("tls= and insecure=True: it is one or the other")
    if not (hasattr(tls, "name") and hasattr(tls, "server")):
        raise LocalError(f"tls= is Tls(certificate, authority), not {shown(tls)}")
    if tls.name != name:
        raise LocalError(f"the certificate is {tls.name}'s, and not {name}'s")


def no_argument(name: str, known: Iterable[str]) -> LocalError:
    """Return what to say of an argument that a peer does not have, with what may be meant."""
    near = difflib.get_close_matches(name, sorted({told(one) for one in known}), 1, _NEAR)
    hint = f"; did you mean {near[0]}=?" if near else ""
    return LocalError(f"a peer has no argument {name!r}{hint}")
