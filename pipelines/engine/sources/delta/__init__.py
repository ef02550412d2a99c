"""A Delta table that somebody else writes: one version, a span of its commits, or those that come."""
