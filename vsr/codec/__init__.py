"""Bytes to neutral messages and back."""
