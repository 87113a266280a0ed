"""Kernels of a stream: ids, release, order of ties."""
