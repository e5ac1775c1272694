"""
Compare methods on pairs of domains
===================================

``transpl.benchmark.compare`` runs methods on pairs of domains and returns a table. A method is a name, or any
scikit-learn classifier. An evaluator alone holds the target's labels, and a source network is trained once for all
methods and targets that start from it. The network here is small and trained for a few epochs, so that the page builds
in seconds: its scores say nothing about the methods.

Many pairs, seeds and data sets belong on the command line, which runs them in parallel and can be resumed::

    transpl bench --dataset ucihar --methods features-linear --methods shot --methods transpl-plus --seeds 3 --out runs
    transpl table runs --which full --methods features-linear --methods shot --methods transpl-plus
"""

# %%
# Which methods there are
# -----------------------

import pandas as pd
from sklearn.linear_model import RidgeClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PowerTransformer

from transpl import datasets
from transpl.benchmark import compare
from transpl.methods import registry

pd.DataFrame([(name, registry.entry(name).summary) for name in registry.names()], columns=["method", "what it does"])

# %%
# Run some of them
# ----------------
# There is a row per pair, method and seed. A method that fails has an ``error`` instead of scores.

data = datasets.load("synthetic")
small = {"width": 32, "n_layers": 1, "max_epochs": 5, "source_lr": 2e-3, "adapt_lr": 2e-3}
ridge = make_pipeline(PowerTransformer(), RidgeClassifier())
methods = ["no-adapt", "deepcoral", "transpl-plus", "features-linear", ridge]
runs = compare(data, methods, pairs=[(0, 1), (1, 2)], changes=small)
runs[["pair", "method", "seed", "accuracy", "macro_f1", "label_accuracy", "seconds"]].round(3)

# %%
# Means over pairs
# ----------------

table = runs.groupby("method", sort=False)[["accuracy", "macro_f1", "seconds"]].mean()
table.round(3)

# %%

import matplotlib.pyplot as plt

axes = table["accuracy"].plot.barh(xlim=(0, 1), xlabel="accuracy on the target's test windows")
axes.invert_yaxis()
plt.tight_layout()
