"""What a flow says of the feeds of its sources: a module a kind, and `catalog` that lists them."""
