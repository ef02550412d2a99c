"""How the operators run: landing, bucket tasks, tables and commits, in this process or handed out by Spark."""
