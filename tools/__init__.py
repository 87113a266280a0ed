"""Development tools: `python -m tools.NAME` runs one."""
