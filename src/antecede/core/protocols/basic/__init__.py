"""Protocols without causal order: FIFO, and no order."""
