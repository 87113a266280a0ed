"""Compiled kernels: plain functions on Arrow tables and NumPy arrays."""
