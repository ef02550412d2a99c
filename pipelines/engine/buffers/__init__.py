"""Replay buffers: closed sequences on three storages."""
