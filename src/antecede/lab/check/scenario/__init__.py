"""Scripts of a checker's group: their text, carrying one out, and what it says it did."""
