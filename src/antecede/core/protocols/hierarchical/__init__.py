"""The hierarchical protocol of Evropeytsev et al. 2016: three roles, their clocks, translation."""
