"""`python -m pipelines.cli` is `pulseline`."""

from __future__ import annotations

from pipelines.cli import main

if __name__ == "__main__":
    main()
