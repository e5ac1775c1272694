"""Wrong calls and the one line each gets: the argument, what was expected, what came, what to do."""

from __future__ import annotations

import copy

import numpy as np
import pandas as pd
import pytest
import torch
from conftest import TINY, make_waves

from transpl import TransPL
from transpl._utils.errors import InputError

X, Y = make_waves(20, seed=0)
NAN = X.copy()
NAN[3, 0, 5] = np.nan
INF = X.copy()
INF[0, 0, 0] = np.inf


@pytest.fixture(scope="module")
def fitted():
    return TransPL(**TINY).fit(X, Y)


def new(**change):
    return TransPL(**{**TINY, **change})


FIT = {
    "X is one-dimensional": (
        lambda: new().fit(X[0, 0], Y),
        r"^X: expected an array \(n, channels, time\), got shape \(32,\)",
    ),
    "X is four-dimensional": (lambda: new().fit(X[None], Y), r"^X: expected an array \(n, channels, time\), got shape"),
    "X is empty": (lambda: new().fit(X[:0], Y[:0]), r"^X: expected at least one window, got 0 sample"),
    "X has no channel": (lambda: new().fit(X[:, :0], Y), r"^X: expected at least one channel"),
    "X is None": (lambda: new().fit(None, Y), r"^X: expected windows"),
    "X holds NaN": (lambda: new().fit(NAN, Y), r"^X: expected finite numbers, got 1 NaN value.*windows\.cut"),
    "X holds infinity": (lambda: new().fit(INF, Y), r"^X: expected finite numbers that fit float32, got 1 infinite"),
    "X does not fit float32": (lambda: new().fit(X.astype(float) * 1e40, Y), r"^X: expected finite numbers that fit"),
    "X is text": (lambda: new().fit(np.full((4, 1, 8), "a"), Y[:4]), r"^X: expected numbers, got <U1"),
    "X is structured": (lambda: new().fit(np.zeros((4, 1, 8), "f4,i4"), Y[:4]), r"^X: expected numbers, got"),
    "X is complex": (lambda: new().fit(X + 1j, Y), r"^X: expected real numbers"),
    "X is too short": (lambda: new().fit(X[:, :, :7], Y), r"^X: expected windows of at least 8 .*got a window of 7"),
    "X mixes channels": (lambda: new().fit([X[0], X[1, :1]], Y[:2]), r"^X: expected a list of .*same channels"),
    "X is far too large": (lambda: new().fit(X * 1e30, Y), r"^X: expected values of moderate size.*Rescale"),
    "y is None": (lambda: new().fit(X, None), r"^y: requires y"),
    "y is too short": (lambda: new().fit(X, Y[:-1]), r"^y: expected 20 labels, one per window, got 19"),
    "y has one class": (lambda: new().fit(X, np.zeros(20, int)), r"^y: expected 2 or more classes, got 1 class"),
    "y has gaps": (lambda: new().fit(X, np.array([None, *"ab" * 9, "a"])), r"^y: expected a label for every source"),
    "y holds NaN": (lambda: new().fit(X, np.where(Y == 0, np.nan, 1.0)), r"^y: expected a label for every source"),
    "y is masked": (lambda: new().fit(X, np.ma.masked_array(Y, np.arange(20) == 3)), r"^y: expected a label for every"),
    "y holds pandas' NA": (lambda: new().fit(X, pd.array([*Y[1:], None], "Int64")), r"^y: expected a label for every"),
    "y_val is masked": (lambda: new().fit(X, Y, X, np.ma.masked_equal(Y, 1)), r"^y_val: expected classes of y.*None"),
    "y is continuous": (lambda: new().fit(X, np.linspace(0, 1, 20)), r"^y: expected class labels.*continuous"),
    "X_val without y_val": (lambda: new().fit(X, Y, X_val=X), r"^X_val, y_val: expected both or neither"),
    "y_val has a new class": (lambda: new().fit(X, Y, X, Y + 1), r"^y_val: expected classes of y, got also \[2\]"),
    "X_val has other channels": (lambda: new().fit(X, Y, X[:, :1], Y), r"^X_val: expected 2 channel.*got 1"),
    "sample_domain is too short": (
        lambda: new().fit(X, Y, sample_domain=[1, -1]),
        r"^sample_domain: expected 20 whole",
    ),
    "sample_domain is text": (lambda: new().fit(X, Y, sample_domain=["s"] * 20), r"^sample_domain: expected 20 whole"),
    "sample_domain has no source": (lambda: new().fit(X, Y, sample_domain=[-1] * 20), r"^sample_domain: expected some"),
    "patch_length is zero": (lambda: new(patch_length=0).fit(X, Y), r"^patch_length: expected a whole number"),
    "patch_length is text": (lambda: new(patch_length="8").fit(X, Y), r"^patch_length: expected a whole number"),
    "width does not divide": (lambda: new(width=17).fit(X, Y), r"^width: expected a multiple of n_heads=2, got 17"),
    "n_coarse is one": (lambda: new(n_coarse=1).fit(X, Y), r"^n_coarse: expected a whole number, 2 or more"),
    "n_fine is negative": (lambda: new(n_fine=-1).fit(X, Y), r"^n_fine: expected a whole number, 0 or more"),
    "sigma is zero": (lambda: new(sigma=0).fit(X, Y), r"^sigma: expected a positive number, got 0"),
    "sigma is None": (lambda: new(sigma=None).fit(X, Y), r"^sigma: expected a positive number, got None"),
    "prior_temperature is negative": (
        lambda: new(prior_temperature=-1).fit(X, Y),
        r"^prior_temperature: expected a pos",
    ),
    "top_ratio is above one": (lambda: new(top_ratio=2).fit(X, Y), r"^top_ratio: expected a share in \(0, 1\], got 2"),
    "source_lr is zero": (lambda: new(source_lr=0).fit(X, Y), r"^source_lr: expected a positive number"),
    "adapt_lr is negative": (lambda: new(adapt_lr=-1.0).fit(X, Y), r"^adapt_lr: expected a positive number"),
    "batch_size is zero": (lambda: new(batch_size=0).fit(X, Y), r"^batch_size: expected a whole number"),
    "max_epochs is a fraction": (lambda: new(max_epochs=1.5).fit(X, Y), r"^max_epochs: expected a whole number"),
    "dropout is one": (lambda: new(dropout=1.0).fit(X, Y), r"^dropout: expected a share"),
    "smoothing is unknown": (lambda: new(smoothing="add").fit(X, Y), r"^smoothing: expected one of 'floor'"),
    "epsilon is above one": (lambda: new(epsilon=2.0).fit(X, Y), r"^epsilon: expected a share"),
    "length is unknown": (lambda: new(length="N").fit(X, Y), r"^length: expected one of"),
    "confidence is unknown": (lambda: new(confidence="top").fit(X, Y), r"^confidence: expected one of"),
    "adapt_stopping is unknown": (lambda: new(adapt_stopping="never").fit(X, Y), r"^adapt_stopping: expected one of"),
    "residual is unknown": (lambda: new(residual="none").fit(X, Y), r"^residual: expected one of"),
    "weight_decay is negative": (lambda: new(weight_decay=-1).fit(X, Y), r"^weight_decay: expected a number, 0 or"),
    "commitment is text": (lambda: new(commitment="x").fit(X, Y), r"^commitment: expected a number"),
    "channel_alignment is text": (
        lambda: new(channel_alignment="no").fit(X, Y),
        r"^channel_alignment: expected one of",
    ),
    "source_patience is zero": (lambda: new(source_patience=0).fit(X, Y), r"^source_patience: expected a whole number"),
    "smoothing is none": (lambda: new(smoothing="none").fit(X, Y), r"^smoothing: expected one of 'floor', 'additive'"),
    "y mixes types": (lambda: new().fit(X, np.array([1, "a"] * 10, dtype=object)), r"^y: expected labels of one type"),
    "X is masked": (lambda: new().fit(np.ma.masked_greater(X, 0.9), Y), r"^X: expected finite numbers, got \d+ NaN"),
    "devices with an index": (
        lambda: new(device="cuda:1", devices=2).fit(X, Y),
        r"^device: expected 'cuda' for several",
    ),
    "random_state is huge": (lambda: new(random_state=2**40).fit(X, Y), r"^random_state: expected at most"),
    "device is unknown": (lambda: new(device="tpu9").fit(X, Y), r"^device: expected 'auto'"),
    "random_state is text": (lambda: new(random_state="x").fit(X, Y), r"^random_state: expected"),
    "random_state is negative": (lambda: new(random_state=-1).fit(X, Y), r"^random_state: expected"),
}

AFTER_FIT = {
    "mode is unknown": (lambda m: m.adapt(X, mode="tune"), r"^mode: expected one of 'finetune', 'markov'"),
    "X_target has other channels": (lambda m: m.adapt(X[:, :1]), r"^X_target: expected 2 channel.*got 1"),
    "X_target holds NaN": (lambda m: m.adapt(NAN), r"^X_target: expected finite numbers"),
    "X_target is empty": (lambda m: m.adapt(X[:0]), r"^X_target: expected at least one window"),
    "X_target is too short": (lambda m: m.adapt(X[:, :, :4]), r"^X_target: expected windows of at least 8"),
    "X_batch has other channels": (lambda m: m.partial_adapt(X[:, :1]), r"^X_batch: expected 2 channel"),
    "prior is too long": (lambda m: m.adapt(X, prior=[0.2, 0.3, 0.5]), r"^prior: expected 2 non-negative"),
    "prior is negative": (lambda m: m.pseudo_label(X, prior=[-1, 2]), r"^prior: expected 2 non-negative"),
    "prior is text": (lambda m: m.adapt(X, prior=["a", "b"]), r"^prior: expected 2 non-negative"),
    "prior names a stranger": (
        lambda m: m.adapt(X, prior={7: 1.0}),
        r"^prior: expected labels among \[0, 1\], got \[7\]",
    ),
    "X_source without y_source": (lambda m: m.adapt(X, X_source=X), r"^y_source: expected 20 labels"),
    "groups are masked": (lambda m: m.adapt(X, groups=np.ma.masked_equal(Y, 1)), r"^groups: expected a name for every"),
    "prior is masked": (lambda m: m.adapt(X, prior=np.ma.masked_array([0.5, 0.5], [0, 1])), r"^prior: expected 2 non-"),
    "predict on other channels": (lambda m: m.predict(X[:, :1]), r"^X: expected 2 channel\(s\), as in fit, got 1"),
    "predict on NaN": (lambda m: m.predict(NAN), r"^X: expected finite numbers"),
    "predict on fill values": (lambda m: m.predict(np.where(X > 0.9, 9.97e36, X)), r"^X: expected values of moderate"),
    "channel_names is a number": (
        lambda m: m.set_params(channel_names=2).explain(X),
        r"^channel_names: expected 2 names",
    ),
    "channel_names is a mapping": (
        lambda m: m.explain(X, channel_names={"a": 1, "b": 2}),
        r"^channel_names: expected 2",
    ),
    "load from nowhere": (lambda m: TransPL.load("no/such/folder"), r"no such file"),
}


@pytest.mark.parametrize(("call", "message"), FIT.values(), ids=FIT.keys())
def test_wrong_calls_of_fit(call, message):
    _refused(call, message)


@pytest.mark.parametrize(("call", "message"), AFTER_FIT.values(), ids=AFTER_FIT.keys())
def test_wrong_calls_after_fit(fitted, call, message):
    model = copy.deepcopy(fitted)
    before = model.predict_proba(X)
    _refused(lambda: call(model), message)
    assert np.array_equal(model.predict_proba(X), before), "a refused call must leave the model as it was"


def _refused(call, message):
    with pytest.raises(InputError, match=message) as caught:
        call()
    text = str(caught.value)
    assert "\n" not in text
    assert len(text) < 400
    assert text.endswith((".", "])"))


@pytest.mark.parametrize("kind", [torch.float32, torch.bfloat16, torch.float16])
def test_tensors_are_taken_with_or_without_a_gradient(fitted, kind):
    tensor = torch.tensor(X, dtype=kind, requires_grad=True)
    plain = tensor.detach().float().numpy()
    assert np.array_equal(fitted.predict_proba(tensor), fitted.predict_proba(plain))
    assert np.array_equal(fitted.predict_proba(list(tensor)), fitted.predict_proba(plain))
    labels = torch.tensor(Y, dtype=torch.float32, requires_grad=True)
    assert new(max_epochs=1).fit(tensor, labels).classes_.tolist() == [0, 1]
