"""Rules of the papers in their own notation, with lists and sets."""
