"""Figures and the HTML report, from saved results only."""

from transpl.report.page import write_report

__all__ = ["write_report"]
