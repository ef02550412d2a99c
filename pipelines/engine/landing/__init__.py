"""Closed sequences: what they are, how they are written, found again and kept."""
