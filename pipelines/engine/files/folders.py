"""Names of folders that writers and readers of a run's files agree on."""

UNNAMED = "_written"
"""Folder below a table's in which files lie that its log may not name yet; others leave such a folder alone."""
CARRY = "carry"
"""Folder below the root with a folder for each part of the carry; these are no tables, and their files lie in them."""
