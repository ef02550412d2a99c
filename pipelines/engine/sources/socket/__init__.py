"""A socket that sends lines, and the spool that keeps them."""
