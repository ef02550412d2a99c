"""Epochs of a stream: small ones run in the driver, and Spark's two queries say when."""
