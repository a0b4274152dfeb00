"""Signals: named facts about a request."""
