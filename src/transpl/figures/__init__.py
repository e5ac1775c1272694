"""The paper's figures from a folder of results: which models and windows, which study, which drawing."""

from transpl.figures.catalogue import FIGURES
from transpl.figures.choice import Choice
from transpl.figures.making import Made, make_figure

__all__ = ["FIGURES", "Choice", "Made", "make_figure"]
