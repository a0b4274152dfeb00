"""The HTTP front of standalone mode."""
