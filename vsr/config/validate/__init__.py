"""What a structured document must hold beyond the types: bounds, words and references."""
