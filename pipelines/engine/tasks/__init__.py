"""One commit's work: tasks, and operators between tables and scans."""
