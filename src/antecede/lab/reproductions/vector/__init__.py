"""The study of Sahai et al. 2020."""
