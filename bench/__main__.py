"""`make bench`: every benchmark, one after the other; each compares within its own run."""

from __future__ import annotations

from bench import engines, receive_path, stream_rate


def main() -> None:
    print("receive path: microseconds a message\n")
    receive_path.main([])
    print(f"\norder and audit of {engines.ROWS:,} rows in {engines.GROUPS:,} groups\n")
    engines.main()
    print("\nthe stream against a stream without an operator\n")
    stream_rate.main()


if __name__ == "__main__":
    main()
