"""Clocks, protocols, groups and the oracle, with the standard library only."""
