"""What a column says: stream columns, keys, text, times, content hashes. Knows no file."""
