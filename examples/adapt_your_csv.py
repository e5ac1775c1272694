"""
Adapt to your own csv files
===========================

You have labelled recordings of one person and unlabelled recordings of another. This example writes two such files from
the smartwatch data (``pip install "transpl[watch]"``), then does what you would do with yours: read them, fit, adapt,
look at the labels.

On the command line the same is::

    transpl adapt --source lab.csv --target home.csv --label-col exercise --time-col t --window 128 --out results
"""

# %%
# Two csv files
# -------------
# One row per time step, one column per channel, and for the source a column with the label.

import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

from transpl import TransPL, datasets
from transpl.datasets.recordings import read_recordings

data = datasets.load("watch")
folder = Path(tempfile.mkdtemp())


def as_table(X: np.ndarray, y: np.ndarray) -> pd.DataFrame:
    """Windows one after the other, with five seconds between them, as a long table."""
    n, n_channels, n_steps = X.shape
    time = np.arange(n)[:, None] * (n_steps / 50 + 5) + np.arange(n_steps) / 50
    signals = X.transpose(0, 2, 1).reshape(-1, n_channels)
    table = pd.DataFrame(signals, columns=list(data.channel_names)).round(4)
    names = np.array(data.class_names)[np.repeat(y, n_steps)]
    return table.assign(t=time.ravel().round(3), exercise=names)


one, other = data.domain(8), data.domain(4)
as_table(one.X_train, one.y_train).to_csv(folder / "lab.csv", index=False)
as_table(other.X_train, other.y_train).drop(columns="exercise").to_csv(folder / "home.csv", index=False)
pd.read_csv(folder / "lab.csv").head()

# %%
# Read them
# ---------
# No window spans a gap in time, so each of these windows is read as it was.

how = {"time_col": "t", "window": 128}
lab = read_recordings(folder / "lab.csv", label_col="exercise", **how)
home = read_recordings(folder / "home.csv", **how)
print(f"{len(lab.X)} labelled windows, {len(home.X)} windows without labels, channels {', '.join(lab.channel_names)}")

# %%
# Fit and adapt
# -------------
# ``fit`` learns from the labelled windows. ``adapt`` looks at the others, undoes what happened to the sensors if that
# is clear, and judges its classifiers by how they agree there.

model = TransPL(channel_names=lab.channel_names, random_state=0)
model.fit(lab.X, lab.y)
before = model.predict(home.X)
model.adapt(home.X)
after = model.predict(home.X)

accuracy, low, high = model.estimated_accuracy_
print(f"estimated without labels: {accuracy:.0%} of the new labels are right, probably {low:.0%} to {high:.0%}")
print("undone:", *(model.shifts_ or ["nothing"]))

# %%
# Here we happen to know the truth:

truth = np.array(data.class_names)[other.y_train]
print(f"before {np.mean(before == truth):.0%}, after {np.mean(after == truth):.0%}")

# %%
# Labels, and the windows to check first
# --------------------------------------

probabilities = model.predict_proba(home.X)
table = pd.DataFrame({"label": after, "confidence": probabilities.max(axis=1).round(3)})
table.sort_values("confidence").head()
