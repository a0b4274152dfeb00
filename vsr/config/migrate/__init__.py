"""Old layouts of the document rewritten as the canonical one, comments kept."""
