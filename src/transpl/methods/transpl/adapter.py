"""The paper's method as the estimator asks for it: see `transpl.methods.adapter.DomainAdapter`."""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save as serialize

from transpl._utils.errors import invalid
from transpl.markov import CodebookUsage, Drift, Explanation, ShiftReport, TransitionCounts
from transpl.methods.adapter import TargetStream
from transpl.methods.transpl.explaining import drift, explain, shift_report
from transpl.methods.transpl.method import TransPLMethod
from transpl.methods.transpl.saving import deciding_arrays, facts_of, remembered_arrays, state_from
from transpl.methods.transpl.settings import TransPLSettings
from transpl.methods.transpl.vote import Codes, Vote
from transpl.nn import Execution, code_type, resolve_device
from transpl.windows import Labelled, Windows


class PaperAdapter(TransPLMethod):
    """TransPL with parameters by name, explanations, and a state that can be saved."""

    variant: ClassVar[str] = "paper"
    holds_out: ClassVar[bool] = True
    only_patches: ClassVar[bool] = True

    @classmethod
    def from_params(cls, params: Mapping[str, Any]) -> Self:
        return cls(_settings(params), _execution(params))

    def set_params(self, params: Mapping[str, Any]) -> None:
        settings = _settings(params)
        if settings.network(self.n_classes) != self.state.source_network.settings:
            expected, advice = "the network's parameters as in fit", "Call fit again, or set them back."
            raise invalid("set_params", expected=expected, got="others", advice=advice)
        self.settings, self.execution = settings, _execution(params)

    def check_machine(self) -> None:
        resolve_device(self.execution.device)

    def source_settings(self) -> dict[str, Any]:
        return {**asdict(self.settings.source()), "devices": self.execution.devices}

    @property
    def shortest_window(self) -> int:
        return 2 * self.settings.patch_length

    def fit_source(self, source: Labelled, validation: Labelled | None) -> None:
        assert validation is not None
        super().fit_source(source, validation)

    def remember_source(self, source: Labelled, validation: Labelled | None) -> None:
        assert validation is not None
        super().remember_source(source, validation)

    def adapts_with_source(self, mode: str) -> bool:
        return mode == "finetune"

    def adapt(
        self,
        target: Windows,
        prior: NDArray[np.float64] | None = None,
        mode: str | None = None,
        few_labels: NDArray[np.int64] | None = None,
        groups: NDArray[np.int64] | None = None,
        smooth: bool = False,
    ) -> None:
        _refuse_order(groups, smooth)
        super().adapt(target, prior, mode, few_labels)

    def predict_proba(
        self, windows: Windows, groups: NDArray[np.int64] | None = None, smooth: bool = False
    ) -> NDArray[np.float64]:
        _refuse_order(groups, smooth)
        return super().predict_proba(windows)

    def new_target(self) -> TargetStream:
        return _CodeStream(self)

    def unadapted(self) -> Self:
        alone = copy.copy(self)
        alone.state = self.state.unadapted()
        return alone

    def explain(
        self,
        windows: Windows,
        classes: NDArray,
        channel_names: Sequence[str],
        prior: NDArray[np.float64] | None = None,
        nearest: int = 3,
    ) -> Explanation:
        return explain(self, windows, classes, channel_names, prior, nearest)

    def shift_report(self, classes: NDArray, channel_names: Sequence[str]) -> ShiftReport:
        return shift_report(self, classes, channel_names)

    def drift(
        self,
        windows: Windows,
        reference: Windows | None,
        channel_names: Sequence[str],
        *,
        level: float,
        n_shuffles: int,
        block: int,
    ) -> Drift:
        return drift(self, windows, reference, channel_names, level=level, n_shuffles=n_shuffles, block=block)

    def facts(self) -> dict[str, Any]:
        return facts_of(self.state)

    def arrays(self) -> dict[str, NDArray]:
        return deciding_arrays(self.state) | remembered_arrays(self.state)

    def restore(self, facts: Mapping[str, Any], arrays: Mapping[str, NDArray]) -> None:
        self.state = state_from(facts, arrays)

    def fingerprint(self) -> str:
        arrays = {name: np.ascontiguousarray(array) for name, array in deciding_arrays(self.state).items()}
        digest = hashlib.sha256(serialize(arrays))
        prior = None if self.state.prior is None else self.state.prior.tolist()
        about = [self.state.mode, prior, asdict(self.state.source_network.settings), asdict(self.settings)]
        digest.update(json.dumps(about).encode())
        return digest.hexdigest()

    @property
    def mode(self) -> str:
        return self.state.mode

    @property
    def estimate(self) -> None:
        return None

    def standings(self) -> list[Any]:
        return []

    def undone(self, channel_names: Sequence[str]) -> tuple[str, ...]:
        return ()

    @property
    def seconds(self) -> dict[str, float]:
        return self.state.seconds

    @property
    def codebook_usage(self) -> dict[str, CodebookUsage]:
        return self.state.codebook_usage

    @property
    def class_counts(self) -> TransitionCounts:
        return self.state.voting_counts

    @property
    def source_counts(self) -> TransitionCounts:
        return self.state.class_counts.pooled()

    @property
    def target_counts(self) -> TransitionCounts | None:
        return self.state.target_counts


class _CodeStream:
    """A new target as its codes."""

    def __init__(self, method: PaperAdapter) -> None:
        self._method = method
        self._vote: Vote | None = None

    def row(self, n_channels: int, n_steps: int) -> tuple[tuple[int, ...], np.dtype[Any]]:
        settings = self._method.settings
        return (n_channels, n_steps // settings.patch_length), code_type(settings.n_coarse)

    def encode(self, windows: Windows) -> Codes:
        return self._method.codes(windows)

    def adapt(self, parts: Iterable[Codes], n: int) -> TransitionCounts:
        method = self._method
        first, *others = (method.count_codes(codes) for codes in parts)
        counts = sum(others, start=first)
        self._vote = method.vote(replace(method.state.unadapted(), target_counts=counts))
        return counts

    def probabilities(self, part: Codes) -> NDArray[np.float64]:
        assert self._vote is not None, "adapt comes first"
        return self._vote.probabilities(part)


def _refuse_order(groups: NDArray[np.int64] | None, smooth: bool) -> None:
    for name, given in (("groups", groups is not None), ("smooth", smooth)):
        if given:
            expected, advice = "nothing with variant='paper'", "It labels every window by itself: use variant='plus'."
            raise invalid(name, expected=expected, got="it", advice=advice)


def _settings(params: Mapping[str, Any]) -> TransPLSettings:
    values = {each.name: params[each.name] for each in fields(TransPLSettings)}
    if values["smoothing"] is None:
        values["smoothing"] = TransPLSettings.smoothing
    return TransPLSettings(**values)


def _execution(params: Mapping[str, Any]) -> Execution:
    folder = params["checkpoint_dir"]
    return Execution(
        params["device"],
        params["devices"],
        params["n_threads"],
        None if folder is None else Path(folder),
        params["verbose"],
    )
