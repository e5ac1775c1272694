"""Where a cluster listens."""

from __future__ import annotations

import socket
from urllib.parse import urlsplit

from transpl._utils.errors import InputError, invalid

_PATIENCE = 10.0  # seconds


def no_cluster(address: str, reason: object) -> InputError:
    """Build the complaint about an address; the caller raises it."""
    got = f"{address!r} ({reason})"
    return invalid("address", expected="that of a running cluster", got=got, advice="Start it, or correct the address.")


def check_listening(address: str) -> None:
    """Raise if nobody listens at a "host:port", with or without scheme; the engines would try for minutes."""
    try:
        place = urlsplit(address if "://" in address else f"//{address}")
        host, port = place.hostname, place.port
    except ValueError as error:
        raise no_cluster(address, error) from None
    if host is None or port is None:
        return  # "auto" and the like: the engine knows what is meant
    try:
        socket.create_connection((host, port), _PATIENCE).close()
    except OSError as error:
        raise no_cluster(address, error) from None
