"""The paper's figures from a folder of results: which models and windows, which study, which drawing."""

from transpl.report.figures.catalogue import FIGURES
from transpl.report.figures.choice import Choice
from transpl.report.figures.making import Made, make_figure

__all__ = ["FIGURES", "Choice", "Made", "make_figure"]
