"""`make bench`: every benchmark, one after the other; each compares within its own run."""

from __future__ import annotations

from bench import (
    deliver_rate,
    encodings,
    engines,
    groups,
    large_groups,
    live,
    matrix_merge,
    matrix_time,
    meter,
    receive_path,
    silent_group,
    simulators,
    stream_rate,
    stream_shard,
    traces,
)


def main() -> None:
    print("receive path: microseconds a message\n")
    receive_path.main([])
    print("\nwhat a group adds to its protocol: microseconds a message\n")
    groups.main([])
    print("\norders by time in large groups: microseconds a message\n")
    large_groups.main()
    print(
        "\nbytes of control information: accounting, encoded, entropy; a third of "
        "Evropeytsev et al.'s peers\n"
    )
    encodings.main(["0.33"])
    print("\na group that is silent for two million messages\n")
    silent_group.main([])
    print("\nthe matrix of SENT beside numpy: microseconds\n")
    matrix_merge.main()
    print("\nmatrix time beside numpy\n")
    matrix_time.main()
    print(f"\norder and audit of {engines.ROWS:,} rows in {engines.GROUPS:,} groups\n")
    engines.main()
    print("\ntraces of an awkward shape: seconds of processor time\n")
    traces.main()
    print("\npairs ordered without need: seconds a rule\n")
    meter.main(["--spark"])
    print("\nsimulators: deliveries a second\n")
    simulators.main([])
    print("\nthe stream against a stream without an operator\n")
    stream_rate.main([])
    stream_shard.main()
    print("\nlogged bytes delivered, against the same rows passed through\n")
    deliver_rate.main()
    print("\nlive peers, small: all of it by `python -m bench.live`\n")
    live.main(["--quick"])


if __name__ == "__main__":
    main()
