"""Scenarios of the simulator: the model, and TOML files of it."""
