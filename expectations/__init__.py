"""Is it right, and how does a person see it: expectations about the tables, and the report of a flow.

What judges stands here: the expectations that read published tables, the gate before an interval is published, and the
page that shows what ran. Nothing here computes a stream, so nothing here imports `pipelines.engine`: the jobs read the
tables and hand over facts.
"""
