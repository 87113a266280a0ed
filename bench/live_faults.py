"""Effects of member and network faults on a live group: n = 4, 100 bytes, TLS.

    python -m bench.live_faults partition kill stop slow

- *partition*: members in network namespaces are partitioned two and two for 15 s. The measured time
  ends when the last message sent on the other side has been delivered.
- *kill*: SIGKILL under load; longest gap without a delivery at a survivor.
- *stop*: SIGSTOP for 8 s.
- *slow*: the application of one member takes 100 messages per second. Memory and disk limits are
  small, so that it is live, lagging and evicted within seconds.
"""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from statistics import median
from typing import Any

import numpy as np

from bench.live_figures import Figure, SkippedPart
from bench.live_group import MemberLog, PeerGroup, count_lost, find_longest_gap_ms

MEMBERS = 4
NS = 10**9
Findings = Iterator[Figure | SkippedPart]


def compute_rate(seen: MemberLog, start: int, end: int, *but: int) -> float:
    """Return deliveries per second between two times, without messages of some senders."""
    got = seen.got
    counted = (got[:, 3] >= start) & (got[:, 3] < end) & ~np.isin(got[:, 0], but)
    return float(counted.sum()) / ((end - start) / NS)


# -- partition ------------------------------------------------------------------------------------


def partition(seconds: float = 15.0, rate: float = 100.0, turns: int = 1) -> Findings:
    from tests.live.networks.needs import reason  # needs pytest

    if reason is not None:
        yield SkippedPart("partition", reason)
        return
    runs = [_run_partition(seconds, rate) for _ in range(turns)]
    for at, (what, unit, at_most) in enumerate(
        (
            ("acknowledged messages that a member lacks", "", 0),
            ("duplicate messages", "", 0),
            ("time from the healing to the last missing message", "s", 1.0),
        )
    ):
        values = [run[at] for run in runs]
        yield _make_median(
            "partition",
            f"{seconds:.0f} s, {rate:.0f}/s a member: {what}",
            values,
            unit,
            at_most=at_most,
        )


def _run_partition(seconds: float, rate: float) -> tuple[float, float, float]:
    from tests.live.networks import Network

    names = [f"m{index}" for index in range(MEMBERS)]
    with (
        Network(names, seed=1) as network,
        PeerGroup(MEMBERS, hosts=[network[name] for name in names]) as group,
    ):
        group.start_all()
        time.sleep(0.5)
        group.send_command(f"go {rate} {seconds + 4}")
        time.sleep(1.5)
        network.cut(names[:2], names[2:])
        cut = time.monotonic_ns()
        time.sleep(seconds)
        network.heal()
        healed = time.monotonic_ns()
        time.sleep(8)
        seen = group.stop()
    lacking, twice = count_lost(seen, range(MEMBERS), range(MEMBERS))
    late = [
        rows.got[
            (rows.got[:, 2] > cut) & (rows.got[:, 2] < healed) & ((rows.got[:, 0] < 2) != (me < 2)),
            3,
        ]
        for me, rows in seen.items()
    ]
    return lacking, twice, (max(int(one.max()) for one in late) - healed) / NS


def _make_median(
    row: str, what: str, values: Sequence[float], unit: str = "", **wanted: float | None
) -> Figure:
    spread = (min(values), max(values)) if len(values) > 1 else None
    return Figure(row, what, median(values), unit, spread=spread, **wanted)


def _make_worst(
    row: str, what: str, values: Sequence[float], unit: str = "", **wanted: float | None
) -> Figure:
    """Like `_make_median`, but the maximum must meet the target."""
    return _make_median(row, f"{what}, worst", values, unit, **wanted)._replace(value=max(values))


# -- kill -----------------------------------------------------------------------------------------


def kill(rate: float = 500.0, turns: int = 3, store: bool = False) -> Findings:
    before, after, lacking = [], [], 0
    for _ in range(turns):
        with PeerGroup(MEMBERS, store=store) as group:
            group.start_all()
            time.sleep(0.5)
            group.send_command(f"go {rate} 5")
            time.sleep(2)
            at = group.signal(3, signal.SIGKILL)
            time.sleep(4.5)
            seen = group.stop(3)
        before.append(max(find_longest_gap_ms(one, at - NS, at, 3) for one in seen.values()))
        after.append(max(find_longest_gap_ms(one, at, at + 2 * NS, 3) for one in seen.values()))
        lacking += count_lost(seen, range(3), range(3))[0]
    row = f"kill -9, {rate:.0f}/s a member" + (", stores" if store else "")
    yield _make_median(row, "longest gap of a survivor in the second before", before, "ms")
    yield _make_worst(row, "longest gap of a survivor in 2 s after", after, "ms", at_most=300)
    yield Figure(
        row, "acknowledged messages of survivors that a survivor lacks", lacking, at_most=0
    )


# -- stop -----------------------------------------------------------------------------------------


def stop(rate: float = 250.0, seconds: float = 8.0, turns: int = 1) -> Findings:
    gaps, ratios, caught, lacking, twice = [], [], [], 0, 0
    for _ in range(turns):
        with PeerGroup(MEMBERS, store=True) as group:
            group.start_all()
            time.sleep(0.5)
            group.send_command(f"go {rate} {seconds + 4}", 3)
            time.sleep(2.5)
            stopped = group.signal(3, signal.SIGSTOP)
            time.sleep(seconds)
            gone_on = group.signal(3, signal.SIGCONT)
            time.sleep(6)
            seen = group.stop()
        others = [seen[index] for index in range(3)]
        gaps.append(max(find_longest_gap_ms(one, stopped, gone_on) for one in others))
        ratios.append(
            min(
                compute_rate(one, stopped, gone_on) / compute_rate(one, stopped - 2 * NS, stopped)
                for one in others
            )
        )
        got = seen[3].got
        missed = got[(got[:, 2] > stopped) & (got[:, 2] < gone_on), 3]
        caught.append((int(missed.max()) - gone_on) / NS)
        found = count_lost(seen, range(3), range(MEMBERS))
        lacking, twice = lacking + found[0], twice + found[1]
    row = f"stopped {seconds:.0f} s"
    yield _make_median(row, "rate of the others meanwhile, ratio to before", ratios, at_least=0.95)
    yield _make_worst(row, "longest gap of another meanwhile", gaps, "ms", at_most=300)
    yield Figure(row, "acknowledged messages that a member lacks", lacking, at_most=0)
    yield Figure(row, "duplicate messages", twice, at_most=0)
    yield _make_median(row, "until the stopped member has caught up", caught, "s")


# -- slow -----------------------------------------------------------------------------------------


def slow(rate: float = 1500.0, limit_s: float = 40.0) -> Findings:
    row = f"slow application, {rate:.0f}/s a member"
    with PeerGroup(
        MEMBERS, store=True, max_memory_bytes=1 << 17, max_disk_bytes=3 << 19, states=True
    ) as group:
        group.start_all()
        time.sleep(0.5)
        group.send_command(f"go {rate} {limit_s}", 3)
        time.sleep(2.5)
        slowed = time.monotonic_ns()
        group.members[3].send_command("read 100")
        ways = _watch_states(group, limit_s)
        end = time.monotonic_ns()
        for one in group.members[:3]:
            one.send_command("hush")
        time.sleep(3)
        seen = group.stop(3)
    names = [name for name, _ in ways]
    yield Figure(
        row,
        f"its states: {', '.join(f'{n} after {t:.1f} s' for n, t in ways)}; in order",
        float(names == ["live", "lagging", "put out"]),
        at_least=1,
    )
    others = [seen[index] for index in range(3)]
    gaps = [find_longest_gap_ms(one, slowed, end, 3) for one in others]
    ratios = [
        compute_rate(one, slowed, end) / compute_rate(one, slowed - 2 * NS, slowed)
        for one in others
    ]
    yield Figure(row, "rate of the others meanwhile, ratio to before", min(ratios), at_least=0.95)
    yield Figure(row, "longest gap of another meanwhile", max(gaps), "ms", at_most=300)
    lacking, twice = count_lost(seen, range(3), range(3))
    yield Figure(row, "acknowledged messages that another member lacks", lacking, at_most=0)
    yield Figure(row, "duplicate messages", twice, at_most=0)


def _watch_states(group: PeerGroup, limit_s: float) -> list[tuple[str, float]]:
    """Return the states of a member at another, and the seconds until each."""
    ways: list[tuple[str, float]] = []
    begin = time.monotonic()
    while time.monotonic() - begin < limit_s - 6:
        state = group.members[0].states.get("m3", "put out")
        if state not in [name for name, _ in ways]:
            ways.append((state, time.monotonic() - begin))
        if state == "put out":
            break
        time.sleep(0.02)
    return ways


PARTS: dict[str, Callable[..., Findings]] = {
    "partition": partition,
    "kill": kill,
    "stop": stop,
    "slow": slow,
}


def main(names: Sequence[str], **options: Any) -> None:
    for name in names or PARTS:
        for figure in PARTS[name](**options):
            print(figure.format_line(), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
