"""Network namespaces on one bridge, and ways between them that can be cut. Needs root."""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from types import TracebackType

_COUNT = itertools.count()


def ip(*words: str) -> None:
    """Run `ip`. Raises CalledProcessError with its words."""
    subprocess.run(["ip", *words], check=True, capture_output=True, text=True)


def why_not() -> str:
    """Return why namespaces cannot be used here; empty: they can."""
    if os.geteuid() != 0:
        return "network namespaces need root"
    if shutil.which("ip") is None:
        return "network namespaces need the command ip (iproute2)"
    try:
        with Namespaces(2) as namespaces, namespaces.cut([(0, 1)]):
            pass
    except subprocess.CalledProcessError as error:
        return f"no network namespaces here: {error.stderr.strip()}"
    return ""


class Namespaces:
    """So many namespaces with one address each, on a bridge of their own."""

    def __init__(self, count: int) -> None:
        self._prefix = f"a{os.getpid()}x{next(_COUNT)}"
        self.names = [f"{self._prefix}n{k}" for k in range(count)]
        self.addresses = [f"10.77.0.{k + 1}" for k in range(count)]

    def __enter__(self) -> Namespaces:
        bridge = f"{self._prefix}b"
        try:
            ip("link", "add", bridge, "type", "bridge")
            ip("link", "set", bridge, "up")
            for k, (name, address) in enumerate(zip(self.names, self.addresses, strict=True)):
                outer = f"{self._prefix}v{k}"
                ip("netns", "add", name)
                ip("link", "add", outer, "type", "veth", "peer", "name", "eth0", "netns", name)
                ip("link", "set", outer, "master", bridge, "up")
                ip("-n", name, "addr", "add", f"{address}/24", "dev", "eth0")
                ip("-n", name, "link", "set", "eth0", "up")
                ip("-n", name, "link", "set", "lo", "up")
        except BaseException:
            self._remove()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._remove()

    def _remove(self) -> None:
        for name in self.names:
            with contextlib.suppress(subprocess.CalledProcessError):
                ip("netns", "del", name)
        with contextlib.suppress(subprocess.CalledProcessError):
            ip("link", "del", f"{self._prefix}b")

    def command(self, place: int, *words: str) -> list[str]:
        """Return the command that runs these words in a namespace."""
        return ["ip", "netns", "exec", self.names[place], *words]

    @contextlib.contextmanager
    def cut(self, ways: Iterable[tuple[int, int]]) -> Iterator[None]:
        """Drop what goes from the first to the second place of each way, meanwhile."""
        ways = list(ways)
        try:
            for source, target in ways:
                self._route("add", source, target)
            yield
        finally:
            for source, target in ways:
                with contextlib.suppress(subprocess.CalledProcessError):
                    self._route("del", source, target)

    def _route(self, action: str, source: int, target: int) -> None:
        ip("-n", self.names[source], "route", action, "blackhole", f"{self.addresses[target]}/32")
