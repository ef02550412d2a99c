"""`pulseline bench`: what things cost, each figure beside what it is compared with in the same run."""
