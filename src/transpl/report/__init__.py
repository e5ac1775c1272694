"""Figures and the HTML pages, from saved results only."""

from transpl.report.adaptation import write_report

__all__ = ["write_report"]
