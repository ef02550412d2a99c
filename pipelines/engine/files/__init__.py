"""Bytes on disk: written so that they stay, hashed, read back in order. Knows no table and no sequence."""
