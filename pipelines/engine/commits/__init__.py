"""The Delta tables, the table `commits` and its protocol, the lease, and what readers see."""
