"""Compiled kernels: ordered, false and missed pairs of ordering rules."""
