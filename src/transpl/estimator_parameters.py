"""The parameters of `TransPL`, and the settings that they make. `TransPL` itself tells what they mean."""

from __future__ import annotations

import os
from dataclasses import fields
from pathlib import Path
from typing import Self

import numpy as np
from sklearn.base import BaseEstimator

from transpl.errors import one_of
from transpl.methods import TransPLSettings
from transpl.methods.transpl_settings import MODE_OF, PLUS, VARIANTS
from transpl.sources import plain, seed_of
from transpl.training import Execution
from transpl.training.devices import resolve_device


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
        variant: str = "paper",
        vote: str | None = None,
        calibrate: bool | None = None,
        classifier_evidence: bool | None = None,
        aligned_copies: bool | None = None,
        refine_rounds: int | None = None,
        refine_share: float | None = None,
        temper: bool | None = None,
        learning: str | None = None,
        devices: int = 1,
        n_threads: int | None = None,
        checkpoint_dir: str | os.PathLike[str] | None = None,
        verbose: bool = False,
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
        self.vote = vote
        self.calibrate = calibrate
        self.classifier_evidence = classifier_evidence
        self.aligned_copies = aligned_copies
        self.refine_rounds = refine_rounds
        self.refine_share = refine_share
        self.temper = temper
        self.learning = learning
        self.devices = devices
        self.n_threads = n_threads
        self.checkpoint_dir = checkpoint_dir
        self.verbose = verbose

    def check_parameters(self) -> Self:
        """Raise now, rather than in `fit`, if a parameter makes no sense. Nothing is drawn from `random_state`."""
        drawn = self.random_state is None or isinstance(self.random_state, np.random.RandomState)
        self._settings(0 if drawn else seed_of(self.random_state))
        resolve_device(self._execution().device)
        return self

    @property
    def own_mode(self) -> str:
        """How `adapt` adapts unless told otherwise."""
        one_of("variant", self.variant, tuple(VARIANTS))
        return MODE_OF[self.variant]

    def _settings(self, seed: int) -> TransPLSettings:
        one_of("variant", self.variant, tuple(VARIANTS))
        params = {field.name: plain(getattr(self, field.name)) for field in fields(TransPLSettings)}
        # An option that no variant sets is given even if it is None, and refused where that makes no sense.
        given = {name: value for name, value in params.items() if value is not None or name not in PLUS}
        return TransPLSettings(**{**VARIANTS[self.variant], **given, "random_state": seed})

    def _execution(self) -> Execution:
        folder = None if self.checkpoint_dir is None else Path(self.checkpoint_dir)
        return Execution(self.device, self.devices, self.n_threads, folder, self.verbose)
