"""Causal broadcast by matrix clocks, stability, recovery (Sahai et al. 2020)."""
