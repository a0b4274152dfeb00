"""Aggregate strategies: from the outcomes of several branches to one value."""
