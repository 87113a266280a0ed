"""Causal order of oversized groups: a fixpoint over joins."""
