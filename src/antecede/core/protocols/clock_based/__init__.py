"""Orders by linear and physical clocks, with their transmission procedure (Tsuneizumi et al.)."""
