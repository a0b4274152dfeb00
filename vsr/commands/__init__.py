"""Commands of the CLI that need the whole Router; each imports what it needs when it runs."""
