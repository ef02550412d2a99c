"""Facts in sentences."""
