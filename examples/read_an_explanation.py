"""
Read an explanation
===================

``explain`` takes labels apart: what each witness adds to the log odds of a label, and for two kinds of witness which
transitions or features that came from. The parts add up to the answer without remainder.
"""

# %%
# A model, adapted to another person
# ----------------------------------

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from transpl import TransPL, datasets

data = datasets.load("synthetic")
one, other = data.domain(0), data.domain(1)
classes = np.array(data.class_names)
model = TransPL(channel_names=data.channel_names).fit(one.X_train, classes[one.y_train]).adapt(other.X_train)
explanation = model.explain(other.X_test[:20])

# %%
# One window in a sentence
# ------------------------

print(explanation.sentence(0))

# %%
# Who said so
# -----------
# What each witness adds to the log odds of the label against the next class.

explanation.top_evidence(0).table()

# %%
# With the share of each class and what known labels add, the parts are the log odds, to the last digit.

parts = explanation.contributions(0)
runner_up, best = np.sort(explanation.probabilities[0])[-2:]
print(f"sum of the parts {parts.witnesses.sum() + parts.bias + parts.rest:.6f}")
print(f"log odds         {np.log(best / runner_up):.6f}")

# %%
# What shifted
# ------------
# How far each channel moved: the earth mover's distance between the transition matrices of source and target.

pd.DataFrame({"channel": data.channel_names, "distance": model.channel_distances_.round(3)}).sort_values(
    "distance", ascending=False
)

# %%
# The window, and the source window that is most like it:

signal = explanation.signals[0]
figure, axes = plt.subplots(figsize=(7, 2.5))
axes.plot(signal.T)
axes.set(title=f"window 0: {parts.label}, {best:.0%} sure", xlabel="time step")
plt.tight_layout()
