"""Checks, simulations, diagrams and reproductions of the published results."""
