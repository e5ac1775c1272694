"""What every package uses: errors, files, hashing, metrics, many tasks in parallel. Not public."""
