"""Study of Bhavanasi and Iyer."""
