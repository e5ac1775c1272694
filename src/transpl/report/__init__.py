"""Pages and figures, made from saved results only.

`write_report` makes the page of one adaptation, `write_leaderboard` that of a benchmark folder, and
`transpl.report.figures.make_figure` the figures of the paper.
"""

from transpl.report.adaptation_page import write_report
from transpl.report.leaderboard_page import write_leaderboard

__all__ = ["write_leaderboard", "write_report"]
