"""Severity of events, from columns of levels, statuses, response codes and error tags."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow

from antecede.tables.kernels import encode_column
from antecede.tables.view.binary_block import Array
from antecede.tables.view.extra_columns import as_text

NORMAL: Final = 0
WARNING: Final = 1
ERROR: Final = 2
_WARNINGS: Final = frozenset({"warn", "warning"})
_ERRORS: Final = frozenset(
    [
        "error",
        "err",
        "fatal",
        "critical",
        "crit",
        "alert",
        "emerg",
        "emergency",
        "severe",
        "panic",
        "failed",
        "failure",
    ]
)


_NO_ERRORS: Final = frozenset(["", "false", "0", "no", "none", "null", "nan", "[]", "{}"])


def _normalize(text: str) -> str:
    """Return a cell in lower case, without the quotes of JSON and the ".0" of a whole number."""
    plain = text.strip().strip('"').strip().lower()
    return re.sub(r"^(\d+)\.0+$", r"\1", plain)


def _rate_level(text: str) -> int:
    return ERROR if text in _ERRORS else WARNING if text in _WARNINGS else NORMAL


def _rate_response(text: str) -> int:
    code = int(text) if text.isdecimal() else 0
    return ERROR if 500 <= code < 600 else WARNING if 400 <= code < 500 else NORMAL


def _rate_status(text: str) -> int:
    """Rate a word or the code of an HTTP response; a column `status` may have either."""
    return max(_rate_level(text), _rate_response(text))


def _rate_call(text: str) -> int:
    return NORMAL if text in ("", "0", "ok") else ERROR


def _rate_error(text: str) -> int:
    """Rate a tag whose presence is an error unless it is empty or denies one."""
    return NORMAL if text in _NO_ERRORS else ERROR


# The first pattern that matches the name of a column decides.
_RATINGS: Final[tuple[tuple[str, Callable[[str], int]], ...]] = (
    (r"http.*status(_code)?|status_code", _rate_response),
    (r"(.*[._])?(level|severity|severity_text|loglevel|log_level|lvl)", _rate_level),
    (r"(.*[._])?status", _rate_status),
    (r"(.*[._])?grpc[._]status_code", _rate_call),
    (r"error", _rate_error),
)


class Severity(NamedTuple):
    """Severity of each row [rows], and the columns that it comes from."""

    rows: Array
    columns: list[str]

    @classmethod
    def none(cls, size: int) -> Severity:
        """Return the severity of rows without any of the columns."""
        return cls(np.zeros(size, np.uint8), [])


def find_severity(extra: pyarrow.Table) -> Severity:
    """Return the severity of the rows of a table."""
    severity, names = np.zeros(len(extra), np.uint8), []
    for name in extra.column_names:
        rate = next((rate for form, rate in _RATINGS if re.fullmatch(form, name.lower())), None)
        if rate is None:
            continue
        column: Any = as_text(extra[name])
        values, codes = encode_column(column)
        ratings = [*(rate(_normalize(value)) for value in values), NORMAL]
        rated = np.array(ratings, np.uint8)[codes]  # code -1: null
        if rated.any():
            names.append(name)
            np.maximum(severity, rated, out=severity)
    return Severity(severity, names)
