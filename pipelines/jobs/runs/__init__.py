"""A run under way: what it is made of, and what must hold before it begins."""
