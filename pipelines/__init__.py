"""Pulseline's code: what the operators mean, how Spark and plain Python run them, and the `pulseline` command."""
