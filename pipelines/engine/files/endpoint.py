"""Why an endpoint cannot be asked: libraries of stores say of each trouble below HTTP that a request was not sent."""

from __future__ import annotations

import socket
import ssl
from urllib.parse import urlsplit

PATIENCE = 3.0
"""Seconds in which an endpoint must take a connection."""
PORTS = {"http": 80, "https": 443}
NAMED = "of AWS_ENDPOINT_URL"


def why_unreached(endpoint: str) -> str:
    """Say in a few words what becomes of a connection to an endpoint.

    Args:
        endpoint: its address, such as `http://127.0.0.1:9000`.
    """
    parts = urlsplit(endpoint)
    where = f"{parts.netloc.rpartition('@')[2]} {NAMED}"
    try:
        host, port = parts.hostname or "", parts.port or PORTS.get(parts.scheme, 0)
        with socket.create_connection((host, port), timeout=PATIENCE) as there:
            if parts.scheme == "https":
                ssl.create_default_context().wrap_socket(there, server_hostname=host).close()
    except ssl.SSLCertVerificationError as problem:
        return f"{where} has a certificate that is not trusted: {problem.verify_message}"
    except ssl.SSLError:
        return f"{where} speaks no TLS, which https:// asks for"
    except (OSError, ValueError, OverflowError) as problem:
        said = problem.strerror if isinstance(problem, OSError) and problem.strerror else str(problem)
        return f"{where} cannot be reached: {said}"
    return f"{where} takes a connection, and answers no request"
