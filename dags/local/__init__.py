"""Airflow on this machine: `python -m dags.local up` starts it with a database of its own, `down` ends all of it.

`place` knows where things lie, `settings` writes Airflow's configuration, `database` is the embedded PostgreSQL,
`keeper` starts the parts and looks after them, `doorway` asks the running Airflow how it is. No DAGs here.
"""
