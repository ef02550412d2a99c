"""One module a command, called like it."""
