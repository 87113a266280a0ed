"""Study of Evropeytsev et al. 2016."""
