"""The structures of control information: packed vectors, windows, intervals, their bytes."""
