"""Write docs/_extra/leaderboard.html: every method on both networks, on the paper's pairs, from docs/results/*.csv.

python docs/generate_leaderboard.py

The page has seed 0 alone, which every finished row has, so that all rows can be compared and ranked.
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import pandas as pd

from transpl.benchmark import Leaderboard, leaderboard_of_lines
from transpl.report import write_leaderboard

HERE = Path(__file__).parent
PAGE, FOLDER = HERE / "_extra" / "leaderboard.html", HERE / "results"
FILES = ("full", "beyond", "shallow", "cnn")
TABLES = ("full", "beyond", "cnn")
SETS = ("ucihar", "wisdm", "hhar", "ptb")
SEED = 0
_GONE = "transpl-plus-2025"  # methods of an earlier version


def main() -> None:
    """Write the page."""
    PAGE.parent.mkdir(exist_ok=True)
    print(f"wrote {write_leaderboard(board(), PAGE)}")


def board() -> Leaderboard:
    """The leaderboard of seed 0; runs of the tables that no file has are shown as not run."""
    lines = pd.concat([pd.read_csv(path, dtype=str) for name in FILES if (path := FOLDER / f"{name}.csv").exists()])
    wanted = lines["dataset"].isin(SETS) & (lines["seed"] == str(SEED)) & ~lines["row"].str.startswith(_GONE)
    # Standardised by domain, as these are by themselves, they are rows of the table `cnn` too.
    wanted &= ~(lines["row"].isin(["features-linear", "features-trees"]) & (lines["normalise"] == "none"))
    chosen = lines[wanted].drop_duplicates(["dataset", "row", "pair", "backbone", "normalise"])
    with TemporaryDirectory() as folder:
        path = Path(folder) / "lines.csv"
        chosen.to_csv(path, index=False)
        return leaderboard_of_lines([path], TABLES)


if __name__ == "__main__":
    main()
