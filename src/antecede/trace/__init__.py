"""Traces: one event schema, readers of many formats, a quarantine for bad rows."""
