"""What one request comes to, recorded, brought to a common form and compared."""
