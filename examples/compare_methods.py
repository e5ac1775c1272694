"""
Compare methods on a pair of domains
====================================

``transpl.benchmark.compare`` runs methods by name on the same source and target. An evaluator alone holds the target's
labels, and the source network is trained once for all methods that start from it. The network here is small and trained
for a few epochs, so that the page builds in seconds: its scores say nothing about the methods.

Many pairs, seeds and data sets belong on the command line::

    transpl bench --dataset ucihar --methods no-adapt --methods shot --methods transpl-plus --seeds 3 --out runs
    transpl table runs --which full
"""

# %%
# Which methods there are
# -----------------------

import pandas as pd

from transpl import datasets
from transpl.benchmark import compare
from transpl.methods import registry

pd.DataFrame([(name, registry.entry(name).summary) for name in registry.names()], columns=["method", "what it does"])

# %%
# Run some of them
# ----------------
# ``compare`` yields each result as soon as its method is done. A method that fails gives a result with an ``error``.

data = datasets.load("synthetic")
small = {"width": 32, "n_layers": 1, "max_epochs": 5, "source_lr": 2e-3, "adapt_lr": 2e-3}
methods = ["no-adapt", "deepcoral", "shot", "transpl", "transpl-plus"]
results = list(compare(data, (0, 1), methods, seed=0, changes=small))

table = pd.DataFrame(
    {
        "accuracy": [result.test["accuracy"] for result in results],
        "macro-F1": [result.test["macro_f1"] for result in results],
        "seconds": [sum(result.seconds.values()) for result in results],
    },
    index=[result.method for result in results],
)
table.round(3)

# %%

import matplotlib.pyplot as plt

axes = table["accuracy"].plot.barh(xlim=(0, 1), xlabel="accuracy on the target's test windows")
axes.invert_yaxis()
plt.tight_layout()
