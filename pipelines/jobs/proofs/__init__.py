"""What proves the product and is not it: parity, certificates, comparisons, cases; so do `drill` and `bench`."""
