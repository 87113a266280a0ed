"""The compiled engines of the simulator, and what both need."""
