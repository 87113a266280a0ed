"""Clocks and the structures of control information, as values."""
