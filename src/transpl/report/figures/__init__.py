"""The paper's figures from a folder of results: one file per figure, with its study and its drawing."""

from transpl.report.figures.from_results import FIGURES, FigureFiles, RunChoice, make_figure

__all__ = ["FIGURES", "FigureFiles", "RunChoice", "make_figure"]
