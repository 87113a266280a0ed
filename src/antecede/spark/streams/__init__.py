"""Causal order and deliveries of streaming DataFrames, and their state."""
