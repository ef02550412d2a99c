"""A folder in which files arrive."""
