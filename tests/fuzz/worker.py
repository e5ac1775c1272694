"""The process in which the driver reads damaged files."""

from __future__ import annotations

from driver import serve

if __name__ == "__main__":
    serve()
