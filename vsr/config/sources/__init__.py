"""Where documents come from while the Router serves."""
