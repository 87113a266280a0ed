"""Ordering protocols, one paper's protocol a file. Start with `base` and `fifo`."""
