"""The parameters of `TransPL`, and the method that they make. `TransPL` itself tells what they mean."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator

from transpl.estimator.validation import plain, seed_of
from transpl.estimator.variants import method_class, own_mode
from transpl.methods.contract import ExplainableMethod


class Parameters(BaseEstimator):
    """Parameters as scikit-learn wants them: by name in the signature, kept as they were given, checked later."""

    def __init__(
        self,
        *,
        patch_length: int = 8,
        width: int = 64,
        n_coarse: int = 8,
        n_fine: int = 64,
        sigma: float = 0.2,
        prior_temperature: float = 1.0,
        top_ratio: float = 0.5,
        source_lr: float = 5e-4,
        adapt_lr: float = 5e-4,
        batch_size: int = 32,
        max_epochs: int = 200,
        random_state: int | np.random.RandomState | None = 0,
        device: str = "auto",
        channel_alignment: bool = True,
        smoothing: str | None = None,
        epsilon: float | None = None,
        length: str = "transitions",
        confidence: str = "max",
        n_layers: int = 2,
        n_heads: int = 8,
        dropout: float = 0.3,
        commitment: float = 0.25,
        residual: str = "normalised",
        cls_trainable: bool = False,
        weight_decay: float = 0.01,
        check_every: int = 2,
        source_patience: int = 2,
        adapt_patience: int = 5,
        adapt_stopping: str = "source",
        warmup_steps: int = 50,
        variant: str = "plus",
        devices: int = 1,
        n_threads: int | None = None,
        checkpoint_dir: str | os.PathLike[str] | None = None,
        verbose: bool = False,
        witnesses: Sequence[str] | None = None,
        views: Sequence[str] | None = None,
        undo: str | Sequence[str] = "auto",
        triads: Sequence[Sequence[int | str]] | None = None,
        channel_names: Sequence[str] | None = None,
    ) -> None:
        self.patch_length = patch_length
        self.width = width
        self.n_coarse = n_coarse
        self.n_fine = n_fine
        self.sigma = sigma
        self.prior_temperature = prior_temperature
        self.top_ratio = top_ratio
        self.source_lr = source_lr
        self.adapt_lr = adapt_lr
        self.batch_size = batch_size
        self.max_epochs = max_epochs
        self.random_state = random_state
        self.device = device
        self.channel_alignment = channel_alignment
        self.smoothing = smoothing
        self.epsilon = epsilon
        self.length = length
        self.confidence = confidence
        self.n_layers = n_layers
        self.n_heads = n_heads
        self.dropout = dropout
        self.commitment = commitment
        self.residual = residual
        self.cls_trainable = cls_trainable
        self.weight_decay = weight_decay
        self.check_every = check_every
        self.source_patience = source_patience
        self.adapt_patience = adapt_patience
        self.adapt_stopping = adapt_stopping
        self.warmup_steps = warmup_steps
        self.variant = variant
        self.devices = devices
        self.n_threads = n_threads
        self.checkpoint_dir = checkpoint_dir
        self.verbose = verbose
        self.witnesses = witnesses
        self.views = views
        self.undo = undo
        self.triads = triads
        self.channel_names = channel_names

    def check_parameters(self) -> Self:
        """Raise now, rather than in `fit`, if a parameter makes no sense. Nothing is drawn from `random_state`."""
        drawn = self.random_state is None or isinstance(self.random_state, np.random.RandomState)
        self.new_method(0 if drawn else seed_of(self.random_state)).check_machine()
        return self

    @property
    def own_mode(self) -> str:
        """How `adapt` adapts unless told otherwise."""
        return own_mode(self.variant)

    @property
    def holds_out(self) -> bool:
        """Whether `fit` needs held-out source windows."""
        return method_class(self.variant).needs_validation

    def new_method(self, seed: int) -> ExplainableMethod:
        """The variant's method, not fitted; parameters that make no sense are refused."""
        return method_class(self.variant).from_params(self.plain_params(seed))

    def plain_params(self, seed: int) -> dict[str, Any]:
        """All parameters as plain values, with `seed` for `random_state`."""
        return {name: plain(value) for name, value in self.get_params(deep=False).items()} | {"random_state": seed}
