"""Causal broadcast over a mesh, compiled: BSS, IDR, DS."""
