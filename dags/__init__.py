"""When runs happen: one Airflow file per kind of run, each giving one DAG per flow; wiring only, no decision."""
