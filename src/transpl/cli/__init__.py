"""The command line: parses, calls, prints."""

from transpl.cli.main import app, main

__all__ = ["app", "main"]
