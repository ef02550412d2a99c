"""The links of operators that need more than rows and their order: a module is called as its operator is."""
