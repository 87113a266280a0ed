"""What this machine says of its own clock: how far it may be from true time.

Three that can be asked, in this order: the application (`clock_error_s=`), chrony (`chronyc -c
tracking`, where it is installed and synchronized), the kernel (`adjtimex`, read and not changed,
which is what ntpd, systemd-timesyncd and chrony tell it). Containers often see a kernel that counts
as not synchronized; then nobody says, and that is an answer.
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
"""How long chrony may take to answer."""
_TIMEX: Final = struct.Struct("@IqqqqI" if struct.calcsize("@l") == 8 else "@IllllI")
"""modes, offset, freq, maxerror, esterror, status: the beginning of `struct timex`."""
_TIMEX_BYTES: Final = 512
"""More than the whole of it has."""
_UNSYNCHRONIZED: Final = 0x40
_CHRONY_FIELDS: Final = 14


class ClockError(NamedTuple):
    """How far a clock may be from true time, and who says so."""

    error_ns: int | None
    """None: it is not known."""
    source: str
    """Who says it, and where nobody does, why."""


def ask(given_ns: int | None = None) -> ClockError:
    """Return what is known of this machine's clock. Blocks as long as chrony takes to answer."""
    if given_ns is not None:
        return ClockError(given_ns, GIVEN)
    told = of_chrony(run_chrony())
    return told if told.error_ns is not None else of_kernel()


def of_kernel(adjtimex: Callable[[], tuple[int, int, int]] | None = None) -> ClockError:
    """Return what the kernel says; `adjtimex` returns (state, status, maximum error in us)."""
    try:
        state, status, most_us = (adjtimex or _adjtimex)()
    except OSError as error:
        return ClockError(None, f"{KERNEL} does not say: {error}")
    if state < 0 or status & _UNSYNCHRONIZED:
        return ClockError(None, f"{KERNEL} says that its clock is not synchronized")
    return ClockError(most_us * 1000, KERNEL)


def _adjtimex() -> tuple[int, int, int]:
    """Read the kernel's clock (modes 0: nothing is changed). Raises OSError where there is none."""
    if not sys.platform.startswith("linux"):
        raise OSError(f"adjtimex is Linux's, and this is {sys.platform}")
    libc = ctypes.CDLL(None, use_errno=True)
    buffer = ctypes.create_string_buffer(_TIMEX_BYTES)
    state = libc.adjtimex(buffer)
    if state < 0:
        raise OSError(ctypes.get_errno(), "adjtimex is refused")
    _, _, _, most_us, _, status = _TIMEX.unpack_from(buffer.raw)
    return state, status, most_us


def run_chrony() -> str:
    """Return what `chronyc -c tracking` prints; empty: it is not there, or does not answer."""
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
    """Return the bound that chrony documents: offset, root dispersion, half of the root delay."""
    fields = text.strip().split(",")
    if len(fields) < _CHRONY_FIELDS:
        return ClockError(None, f"{CHRONY} is not there")
    if fields[13] == "Not synchronised":
        return ClockError(None, f"{CHRONY} says that its clock is not synchronized")
    try:
        offset, delay, dispersion = (Decimal(fields[k]) for k in (4, 10, 11))
        error_ns = int((abs(offset) + dispersion + abs(delay) / 2) * NS) + 1
    except (InvalidOperation, ValueError, OverflowError):
        return ClockError(None, f"{CHRONY} prints what cannot be read")
    return ClockError(error_ns, CHRONY)
