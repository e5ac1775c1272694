"""What explanations of every kind have in common: windows with labels, chosen by row, saved as one file."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from transpl._utils.errors import check_choice, check_int, invalid
from transpl.markov.counts import check_codes
from transpl.markov.explanation.files import read_explanation, write_explanation
from transpl.markov.explanation.nearest import NearestWindows

ANSWERING = ("source", "markov", "finetune")
_ADVICE = "Use TransPL.explain."


@dataclass(frozen=True, eq=False, kw_only=True)
class BaseExplanation(ABC):
    """Why n windows got their labels; what is common to all variants.

    classes : (K,) labels
    channel_names : D names
    codes : (n, D, N) codes; -1 behind the end of a shorter window
    distances, weights : (D,) how far each channel moved, how far it is trusted
    answers : (n, K) what `predict_proba` says
    mode : which classifier gave these answers
    patch_length : time steps per code
    windows : (n,) row numbers of the windows in the data they were chosen from
    signals : (n, D, T) float32, NaN behind the end of a shorter window; None if they were not kept
    nearest : the source windows that are most alike; None if the model does not know its source's codes
    """

    classes: NDArray
    channel_names: tuple[str, ...]
    codes: NDArray[np.integer]
    distances: NDArray[np.float64]
    weights: NDArray[np.float64]
    answers: NDArray[np.float64]
    mode: str
    patch_length: int
    windows: NDArray[np.int64]
    signals: NDArray[np.float32] | None = None
    nearest: NearestWindows | None = None

    FORMAT: ClassVar[str]  # written into files, by which kinds are told apart
    PER_WINDOW: ClassVar[tuple[str, ...]]  # fields with one row per window
    ARRAYS: ClassVar[tuple[str, ...]]  # fields that are arrays, beside `classes`
    PLAIN: ClassVar[tuple[str, ...]]  # fields that JSON holds

    def __post_init__(self) -> None:
        object.__setattr__(self, "channel_names", tuple(self.channel_names))
        check_choice("mode", self.mode, ANSWERING)
        check_int("patch_length", self.patch_length, least=1)

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, rows: Any) -> Self:
        """Choose windows: a position, a slice, positions or a mask. `windows` goes on telling which rows they were."""
        kept = np.atleast_1d(np.arange(len(self))[rows])
        found = {name: getattr(self, name) for name in self.PER_WINDOW}
        chosen: dict[str, Any] = {name: None if value is None else value[kept] for name, value in found.items()}
        return replace(self, **chosen)

    def only(self, window: int) -> Self:
        """The explanation of the window at this position alone."""
        position = self.position(window)
        return self if len(self) == 1 else self[position]

    @property
    @abstractmethod
    def probabilities(self) -> NDArray[np.float64]:
        """What the stored parts add up to, (n, K)."""

    @property
    def labels(self) -> NDArray:
        """The most probable class by `probabilities`, (n,)."""
        return self.classes[self.probabilities.argmax(axis=1)]

    @property
    def confidence(self) -> NDArray[np.float64]:
        """How sure the labels are, (n,); for ranking."""
        return self.probabilities.max(axis=1)

    @property
    def answer_labels(self) -> NDArray:
        """The label by `predict`, (n,)."""
        return self.classes[self.answers.argmax(axis=1)]

    @abstractmethod
    def sentence(self, window: int) -> str:
        """Say why the window at this position got its label, in plain words."""

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything to one npz file, atomically and without pickle."""
        write_explanation(path, self)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read what `save` wrote; a damaged or foreign file is refused, and nothing in it is executed."""
        return read_explanation(path, cls)

    def position(self, window: int) -> int:
        """Return the position of a window, or complain."""
        if isinstance(window, bool) or not isinstance(window, int | np.integer) or not 0 <= window < len(self):
            expected = f"a position 0..{len(self) - 1}"
            raise invalid("window", expected=expected, got=repr(window), advice="`windows` has the row numbers.")
        return int(window)

    def class_index(self, argument: str, label: Any) -> int:
        """Return the position of a label in `classes`, or complain."""
        found = np.flatnonzero(self.classes == label)
        if len(found) != 1:
            raise invalid(
                argument, expected=f"one of {self.classes.tolist()}", got=repr(label), advice="Check spelling."
            )
        return int(found[0])

    def rivals(self, label: Any = None, against: Any = None) -> tuple[int, int]:
        """Positions of the label and of the class it is held against, of an explanation of one window.

        By default the most probable class, and the most probable of the others.
        """
        p = self.probabilities[0]
        if len(p) < 2:
            advice = "Explain a model of two or more."
            raise invalid("against", expected="a second class", got="only one class", advice=advice)
        a = int(p.argmax()) if label is None else self.class_index("label", label)
        others = np.where(np.arange(len(p)) == a, -np.inf, p)
        b = int(others.argmax()) if against is None else self.class_index("against", against)
        if a == b:
            raise invalid(
                "against", expected="another class than label", got=repr(against), advice="Choose another one."
            )
        return a, b

    def _check(self, shapes: Mapping[str, tuple[int, ...]], n_codes: int) -> None:
        """Refuse arrays that do not belong together; `shapes` are those of the kind's own fields."""
        n, K, D = len(self), len(self.classes), len(self.channel_names)
        expected: dict[str, tuple[int, ...]] = {
            "codes": (n, D, self.codes.shape[-1]),
            "distances": (D,),
            "weights": (D,),
            "answers": (n, K),
            "windows": (n,),
            **shapes,
        }
        if self.signals is not None:
            expected["signals"] = (n, D, self.signals.shape[-1])
        for name, shape in expected.items():
            if getattr(self, name).shape != shape:
                raise invalid(name, expected=f"shape {shape}", got=getattr(self, name).shape, advice=_ADVICE)
        check_codes(self.codes, n_codes)
        if self.nearest is not None and len(self.nearest) != n:
            raise invalid("nearest", expected=f"{n} rows", got=len(self.nearest), advice=_ADVICE)
