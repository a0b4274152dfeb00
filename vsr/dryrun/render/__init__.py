"""What a dry run is shown as: text, JSON, Mermaid, SVG and HTML."""
