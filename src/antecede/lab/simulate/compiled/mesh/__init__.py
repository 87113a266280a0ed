"""Compiled engine of causal broadcast over a mesh: BSS, IDR, DS."""
