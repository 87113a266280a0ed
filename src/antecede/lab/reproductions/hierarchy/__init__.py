"""The study of Evropeytsev et al. 2016."""
