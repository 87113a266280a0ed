"""Chaos test of live groups: processes in network namespaces, killed, stopped and cut off."""
