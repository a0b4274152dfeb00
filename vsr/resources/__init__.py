"""Immutable, normalised resources that a configuration compiles to."""
