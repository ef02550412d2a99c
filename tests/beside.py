"""`python -m tests.beside PATH...`: pytest in the background of a shell, where Ctrl-C does not reach it.

The Makefile sends SIGINT when the tests in front are interrupted, so that fixtures end what they began.
"""

from __future__ import annotations

import signal
import sys

import pytest

if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.exit(pytest.main(sys.argv[1:]))
