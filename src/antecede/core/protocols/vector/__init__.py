"""Causal broadcast by counters of members: BSS, IDR, DS."""
