"""The claim of Evropeytsev et al. 2016 a hundred times further out."""
