"""Transformers: from values of earlier steps to one new value, without asking anybody."""
