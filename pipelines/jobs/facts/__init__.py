"""What is known of a run, as plain values."""
