"""Clocks, protocols, groups and the oracle, on the standard library alone."""
