"""Sweeps of one's own scenario file."""
