"""Causal broadcast by matrix clocks."""
