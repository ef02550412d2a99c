"""The documentation site: its reference is made from the code, and what was built is looked over."""
