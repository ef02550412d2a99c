"""What the tab **Pulseline** shows: `pages` finds the files, `app` serves them behind Airflow's login."""
