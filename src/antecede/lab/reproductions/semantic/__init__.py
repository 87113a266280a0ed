"""The study of Bhavanasi and Iyer."""
