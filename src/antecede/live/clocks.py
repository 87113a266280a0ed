"""Error of this machine's clock.

Three sources, in this order. The application gives it (`clock_error_s=`). Chrony is asked with
`chronyc -c tracking`, if it is installed and synchronized. The kernel is read with `adjtimex`,
which ntpd, systemd-timesyncd and chrony update. Containers often see an unsynchronized kernel
clock. The error is then unknown.
"""

from __future__ import annotations

import ctypes
import shutil
import struct
import subprocess
import sys
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from typing import Final, NamedTuple

from antecede.live.settings import NS

GIVEN, CHRONY, KERNEL = "the application", "chrony", "the kernel"
CHRONY_S: Final = 2.0
_TIMEX: Final = struct.Struct("@IqqqqI" if struct.calcsize("@l") == 8 else "@IllllI")
"""modes, offset, freq, maxerror, esterror, status: the first fields of `struct timex`."""
_TIMEX_BYTES: Final = 512
_UNSYNCHRONIZED: Final = 0x40
_CHRONY_FIELDS: Final = 14


class ClockError(NamedTuple):
    """Largest error of a clock, and its source."""

    error_ns: int | None
    """None: unknown."""
    source: str
    """Source, or the reason why the error is unknown."""


def ask(given_ns: int | None = None) -> ClockError:
    """Return the error of this machine's clock. Blocks while chrony answers."""
    if given_ns is not None:
        return ClockError(given_ns, GIVEN)
    told = of_chrony(run_chrony())
    return told if told.error_ns is not None else of_kernel()


def of_kernel(adjtimex: Callable[[], tuple[int, int, int]] | None = None) -> ClockError:
    """Return the error of the kernel's clock; `adjtimex` returns (state, status, maximum error in
    us).
    """
    try:
        state, status, most_us = (adjtimex or _adjtimex)()
    except OSError as error:
        return ClockError(None, f"{KERNEL} cannot be read: {error}")
    if state < 0 or status & _UNSYNCHRONIZED:
        return ClockError(None, f"{KERNEL} clock is not synchronized")
    return ClockError(most_us * 1000, KERNEL)


def _adjtimex() -> tuple[int, int, int]:
    """Read the kernel's clock without changes (modes 0). Raises OSError without such a clock."""
    if not sys.platform.startswith("linux"):
        raise OSError(f"adjtimex needs Linux, not {sys.platform}")
    libc = ctypes.CDLL(None, use_errno=True)
    buffer = ctypes.create_string_buffer(_TIMEX_BYTES)
    state = libc.adjtimex(buffer)
    if state < 0:
        raise OSError(ctypes.get_errno(), "adjtimex was refused")
    _, _, _, most_us, _, status = _TIMEX.unpack_from(buffer.raw)
    return state, status, most_us


def run_chrony() -> str:
    """Return the output of `chronyc -c tracking`. Empty: not installed, or no answer."""
    path = shutil.which("chronyc")
    if path is None:
        return ""
    try:
        done = subprocess.run(
            [path, "-c", "tracking"], capture_output=True, text=True, timeout=CHRONY_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout if done.returncode == 0 else ""


def of_chrony(text: str) -> ClockError:
    """Return the bound that chrony documents: offset, root dispersion, half the root delay."""
    fields = text.strip().split(",")
    if len(fields) < _CHRONY_FIELDS:
        return ClockError(None, f"{CHRONY} is not installed")
    if fields[13] == "Not synchronised":
        return ClockError(None, f"{CHRONY} is not synchronized")
    try:
        offset, delay, dispersion = (Decimal(fields[k]) for k in (4, 10, 11))
        error_ns = int((abs(offset) + dispersion + abs(delay) / 2) * NS) + 1
    except (InvalidOperation, ValueError, OverflowError):
        return ClockError(None, f"{CHRONY} printed an unknown format")
    return ClockError(error_ns, CHRONY)
