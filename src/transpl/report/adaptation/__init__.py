"""The page about one adaptation: what came in, was learnt, shifted and was labelled, and every window's reasons."""

from transpl.report.adaptation.page import write_report

__all__ = ["write_report"]
