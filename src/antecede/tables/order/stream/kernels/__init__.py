"""Compiled kernels of a stream's release."""
