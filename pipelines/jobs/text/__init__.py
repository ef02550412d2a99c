"""How numbers, instants, tables and flows are spelled."""
