"""Linear and physical clocks, the transmission procedure: Tsuneizumi et al."""
