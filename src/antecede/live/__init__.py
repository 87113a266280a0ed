"""Peers on real networks."""
