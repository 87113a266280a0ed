"""Checks of a peer's arguments, with errors under the names of the arguments."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any, Final

from antecede.errors import LocalError
from antecede.formatting import quote

_NS: Final = 10**9
_NEAR: Final = 0.75
_NUMBERS: Final = {"int": False, "int | None": True}
"""Annotation of a number -> whether None is allowed."""


def argument_name(name: str) -> str:
    """Return the argument name of a setting: times in seconds."""
    return f"{name[:-3]}_s" if name.endswith("_ns") else name


def check_fields(settings: Any, above_zero: Iterable[str]) -> None:
    """Raise LocalError for values of the wrong type, and for numbers that are too small.
    `settings`: a dataclass; `above_zero`: names of the numbers that exclude 0.
    """
    positive = {*above_zero}
    for one in fields(settings):
        value = getattr(settings, one.name)
        if one.type == "bool" and not isinstance(value, bool):
            raise LocalError(f"{one.name}={quote(value)} is invalid; expected True or False")
        if one.type not in _NUMBERS or (value is None and _NUMBERS[one.type]):
            continue
        if isinstance(value, bool) or not isinstance(value, int):
            raise LocalError(
                f"{argument_name(one.name)}={quote(value)} is invalid; expected a whole number"
            )
        if value < 0 or (value == 0 and one.name in positive):
            least = "above 0" if one.name in positive else "0 or more"
            given = f"{value / _NS:g}" if one.name.endswith("_ns") else quote(value)
            raise LocalError(f"{argument_name(one.name)}={given} is invalid; expected {least}")


def check_seconds(name: str, value: object) -> None:
    """Raise LocalError unless a value is a finite number."""
    known = isinstance(value, int | float) and not isinstance(value, bool)
    if not known or not math.isfinite(value):  # type: ignore[arg-type]
        raise LocalError(f"{name}={quote(value)} is invalid; expected a number of seconds")


def check_timeout(value: object) -> None:
    """Raise LocalError for an invalid waiting time."""
    check_seconds("timeout_s", value)
    if value < 0:  # type: ignore[operator]
        raise LocalError(f"timeout_s={quote(value)} is invalid; expected 0 or more")


def options_of(options: object) -> dict[str, Any]:
    """Return the options of an order. Raises LocalError for other types."""
    if options is None:
        return {}
    if not isinstance(options, Mapping) or not all(isinstance(name, str) for name in options):
        raise LocalError(
            f'options={quote(options)} is invalid; expected a mapping such as {{"bounds": ...}}'
        )
    return dict(options)


def check_secure(name: str, tls: Any, insecure: object) -> None:
    """Raise LocalError unless a peer has a certificate with its name, or is `insecure`."""
    if not isinstance(insecure, bool):
        raise LocalError(f"insecure={quote(insecure)} is invalid; expected True or False")
    if tls is None and not insecure:
        raise LocalError(
            "a peer needs tls=Tls(certificate, authority); `antecede certs` creates both "
            "for tests. insecure=True goes without"
        )
    if tls is None:
        return
    if insecure:
        raise LocalError("tls= and insecure=True exclude each other; give one of them")
    if not (hasattr(tls, "name") and hasattr(tls, "server")):
        raise LocalError(f"tls={quote(tls)} is invalid; expected Tls(certificate, authority)")
    if tls.name != name:
        raise LocalError(f"the certificate names {tls.name!r}, not {name!r}; give that of {name!r}")


def no_argument(name: str, known: Iterable[str]) -> LocalError:
    """Return the error for an unknown argument of a peer, with a suggestion."""
    near = difflib.get_close_matches(name, sorted({argument_name(one) for one in known}), 1, _NEAR)
    hint = f"; did you mean {near[0]}=?" if near else ""
    return LocalError(f"unknown argument {name!r} of Peer{hint}")
