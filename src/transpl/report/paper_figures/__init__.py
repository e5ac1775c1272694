"""The paper's figures, drawn from the plain data of `transpl.report.studies`."""

from transpl.report.paper_figures.page import render_figure

__all__ = ["render_figure"]
