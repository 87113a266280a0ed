"""The study of Tsuneizumi et al."""
