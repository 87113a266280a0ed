"""Compiled: what ordering a table needs and nobody else."""
