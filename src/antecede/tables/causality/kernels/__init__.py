"""Kernels of causal labels, cuts, recovery lines and reachability."""
