"""Slots of Airflow's: streams have some of their own, so that none of them keeps a backfill waiting."""

STREAMS = "pulseline_streams"
SLOTS = 3
"""Streams at once; the Airflow of `make up` runs twice as many tasks."""
ABOUT = "Streams of Pulseline, each of which runs until it is stopped."
