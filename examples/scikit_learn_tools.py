"""
Use scikit-learn's tools
========================

``TransPL`` is a scikit-learn classifier, so that pipelines, cross-validation and parameter searches work as with any
other. The only difference is the shape: windows are (n, channels, time). The data here is made, and few witnesses are
used, so that the page builds in seconds.
"""

# %%
# A pipeline, scored on people it has not seen
# --------------------------------------------
# Three people are the source. ``LeaveOneGroupOut`` fits on two of them and scores on the third, without adapting: that
# is what a new person costs.

import numpy as np
import pandas as pd
import sklearn
from sklearn.model_selection import GridSearchCV, LeaveOneGroupOut, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from transpl import TransPL, datasets

people = datasets.make_shifted(n_domains=4, n_train=60, n_test=30, length=64)
parts = [people.domain(i) for i in range(3)]
X = np.concatenate([part.X_train for part in parts])
y = np.concatenate([part.y_train for part in parts])
person = np.repeat([0, 1, 2], [len(part.y_train) for part in parts])

smoothed = FunctionTransformer(lambda X: (X[:, :, 1:] + X[:, :, :-1]) / 2)
pipe = make_pipeline(smoothed, TransPL(witnesses=("linear", "codes")))
found = cross_validate(pipe, X, y, groups=person, cv=LeaveOneGroupOut(), scoring=["accuracy", "f1_macro"])
pd.DataFrame(found).filter(like="test_").round(3)

# %%
# Choose witnesses by a search
# ----------------------------

grid = {"witnesses": [("linear",), ("codes",), ("linear", "codes")]}
search = GridSearchCV(TransPL(views=("recorded", "standardised")), grid, cv=LeaveOneGroupOut())
search.fit(X, y, groups=person)
pd.DataFrame(search.cv_results_)[["param_witnesses", "mean_test_score"]].round(3)

# %%
# Fit and adapt in one call
# -------------------------
# With ``sample_domain``, at least 0 for the source and negative for the target, ``fit`` also adapts. The target's
# labels are not read. Where metadata routing is on, pipelines and cross-validation pass ``sample_domain`` on.

new = people.domain(3)
both = np.concatenate([X, new.X_train])
hidden = np.concatenate([y, np.full(len(new.X_train), -1)])
sample_domain = np.repeat([1, -1], [len(X), len(new.X_train)])

before = pipe.fit(X, y).score(new.X_test, new.y_test)
with sklearn.config_context(enable_metadata_routing=True):
    pipe.fit(both, hidden, sample_domain=sample_domain)
print(f"on a fourth person: before {before:.0%}, after {pipe.score(new.X_test, new.y_test):.0%}")
print(f"estimated without labels: {pipe[-1].estimated_accuracy_.accuracy:.0%}")
