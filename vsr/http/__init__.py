"""HTTP/1.1 framing and connections without I/O."""
