"""Plan, runs, results on disk, tables and statistics, and the published figures to stand beside ours."""
