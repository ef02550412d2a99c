#!/bin/sh
# The Python that Spark starts on this machine: the one of PULSELINE_PYTHON, with the packages that are installed there.
# Spark puts its own archives of PySpark and py4j in front of them, and from an archive each process compiles all that it
# imports anew, out of the ten seconds that Spark gives it to begin.
set -f
IFS=:
kept=
for each in ${PYTHONPATH-}; do
    case $each in
    */pyspark.zip | */py4j-*-src.zip | */spark-core_*.jar) ;;
    *) kept=$kept${kept:+:}$each ;;
    esac
done
PYTHONPATH=$kept exec "$PULSELINE_PYTHON" "$@"
