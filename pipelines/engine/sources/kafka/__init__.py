"""A topic of Kafka."""
