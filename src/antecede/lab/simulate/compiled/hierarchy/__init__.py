"""The hierarchical protocol of Evropeytsev et al. 2016, compiled."""
