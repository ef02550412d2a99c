"""What Airflow loads as plugins, into every one of its processes."""
