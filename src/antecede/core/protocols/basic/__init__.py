"""Protocols without causal information: no order, and FIFO."""
