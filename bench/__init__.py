"""Measures the Router against other proxies on one machine, in one interleaved run."""
