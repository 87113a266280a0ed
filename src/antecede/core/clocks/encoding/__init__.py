"""Encodings of clocks as bytes."""
