"""Plugins of decisions: what they change in a request, or answer themselves."""
