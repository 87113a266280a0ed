"""Benchmarks; `python -m bench.NAME` runs one."""
