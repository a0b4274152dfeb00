"""Conditions: a question about values of earlier steps that is answered yes or no."""
