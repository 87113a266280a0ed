"""Compiled engine of the hierarchical protocol of Evropeytsev et al. 2016."""
