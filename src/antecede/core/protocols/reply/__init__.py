"""S_b, semantic order, of Bhavanasi and Iyer."""
