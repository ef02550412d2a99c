"""Rows out of files and texts: CSV, JSON lines, Parquet."""
