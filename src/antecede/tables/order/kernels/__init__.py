"""Compiled kernels of ordering alone."""
