"""Study of Tsuneizumi et al."""
