"""What the built-in graph `fusion` does between its calls."""
