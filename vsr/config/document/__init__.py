"""The authored document as typed classes, one module per section."""
