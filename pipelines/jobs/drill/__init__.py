"""`pulseline drill PART`: things are broken on purpose, and what is left is held to a calm run."""
