"""The release of a stream, compiled: rows, names, ties, cycles, the drain."""
