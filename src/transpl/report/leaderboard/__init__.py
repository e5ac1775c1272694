"""The page about a benchmark folder. It takes plain values (`transpl.benchmark.leaderboard`) and needs no torch."""

from transpl.report.leaderboard.page import render_leaderboard, write_leaderboard

__all__ = ["render_leaderboard", "write_leaderboard"]
