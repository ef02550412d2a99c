"""How the three buffers of a flow are to stand, and how much they take: what an environment may say, engine or not."""

from __future__ import annotations

from enum import Enum

MARGIN = 64
"""Covered sequences that stay in the buffers."""
MAX_BYTES = 10 * 1024**3
"""What may wait in the buffers for a consistent state."""


class Apart(Enum):
    """How far the storage of one buffer must be from that of another."""

    FOLDER = "folder"
    """Each has a folder of its own. That survives a folder that is deleted or damaged, not the loss of the disk."""
    DEVICE = "device"
    """Each is on a device of its own. That survives the loss of two disks, not of the machine."""
    HOST = "host"
    """Each is on a host of its own, as the machine's mounts say. That survives the loss of two hosts."""
