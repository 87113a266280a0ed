"""Declared options of protocols, and checks of given ones."""
