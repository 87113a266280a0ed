"""Traces, audits and orders of events as Arrow tables."""
