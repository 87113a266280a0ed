"""Study of Evropeytsev et al. 2016 with a hundred times more peers."""
