"""Users' own files: tables of recordings, read and cut into windows."""

from transpl.datasets.recordings.reading import Recordings, read_recordings

__all__ = ["Recordings", "read_recordings"]
