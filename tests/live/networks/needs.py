"""The mark of tests that need network namespaces: they are skipped, with the reason, elsewhere."""

from __future__ import annotations

import itertools
import os
import shutil
import subprocess
import sys
from functools import cache

import pytest

from tests.live.networks.namespaces import TUN, Host


@cache
def lacking() -> str | None:
    """Return what this machine lacks for networks, None if it can have them."""
    if sys.platform != "linux":
        return "network namespaces are of Linux"
    if os.geteuid():
        return "network namespaces need root"
    if not shutil.which("ip"):
        return "no `ip` here: iproute2 has it"
    if not TUN.exists():
        return f"no {TUN} here"
    return trial()


def trial() -> str | None:
    """Return why a host can not be made; make one and remove it if it can."""
    host = Host("trial", "10.255.255.1", next(trials))
    try:
        os.close(host.make())
        host.remove()
    except (OSError, subprocess.SubprocessError) as error:
        return f"no network namespace can be made: {error}"
    return None


trials = itertools.count(1_000_000)  # numbers that no network has
reason = lacking()
needs_namespaces = pytest.mark.skipif(reason is not None, reason=str(reason))
