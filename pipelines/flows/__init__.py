"""Which operators run on which streams: the flow model read from YAML, its validation, its grid and its plan."""

from pipelines.flows import zones as zones
