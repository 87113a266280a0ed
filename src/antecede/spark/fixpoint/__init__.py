"""Causal order of groups that fit no task: a fixpoint over joins."""
