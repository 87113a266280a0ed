"""Study of Sahai et al. 2020."""
