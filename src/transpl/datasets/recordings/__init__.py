"""Users' own files: tables of recordings, read and cut into windows."""
