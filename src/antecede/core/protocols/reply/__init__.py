"""Reply order: S_b (Bhavanasi and Iyer)."""
