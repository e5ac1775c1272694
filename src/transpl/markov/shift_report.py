"""What shifted between source and target: channels, code transitions, classes."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from transpl._utils.errors import invalid, unreadable_file
from transpl._utils.files import read_json, write_json
from transpl.markov.alignment import channel_weights, row_distances, unread_channels
from transpl.markov.counts import TransitionCounts

_FORMAT = "transpl-shift-1"
_ADVICE = "Use TransPL.shift_report."


@dataclass(frozen=True)
class Undone:
    """A sensor shift that was undone in the target's windows, such as a turned device.

    Attributes
    ----------
    sentence : str
        The shift in plain words.
    kind : str
        "turn", "swap" and so on, as in `transpl.council.shifts.KINDS`.
    margin, threshold : float or None
        How much likelier the shift makes the target, in log units per window, and the margin that was required. None if
        the shift was not found by likelihood.
    shift : mapping
        The whole shift as plain data.
    """

    sentence: str
    kind: str
    margin: float | None = None
    threshold: float | None = None
    shift: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class ShiftReport:
    r"""How far the code transitions of each channel moved, dist_d = (1 / n_c) \sum_i row_{d,i}, and which of them.

    Attributes
    ----------
    classes : tuple of K str
    channel_names : tuple of D str
    source_counts, target_counts : (D, n_c, n_c) int arrays
        How often code i is followed by code j.
    row_distances : (D, n_c) array
        The earth mover's distance between row i of the source's and of the target's transition matrix.
    weights : (D,) array
        How much each channel is trusted; 0 for channels that are `unread`.
    source_shares : (K,) array
        Class proportions of the source's windows.
    target_shares : (K,) array or None
        An *estimate* for the target: the mean of the probabilities. An undecided vote pulls it towards equal shares.
    undone : tuple of Undone
        What was undone before the target was labelled, in this order.
    """

    classes: tuple[str, ...]
    channel_names: tuple[str, ...]
    source_counts: NDArray[np.int64]
    target_counts: NDArray[np.int64]
    row_distances: NDArray[np.float64]
    weights: NDArray[np.float64]
    source_shares: NDArray[np.float64]
    target_shares: NDArray[np.float64] | None = None
    undone: tuple[Undone, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "undone", tuple(self.undone))
        K, D, n_codes = len(self.classes), len(self.channel_names), self.row_distances.shape[-1]
        expected: dict[str, tuple[int, ...]] = {
            "source_counts": (D, n_codes, n_codes),
            "target_counts": (D, n_codes, n_codes),
            "row_distances": (D, n_codes),
            "weights": (D,),
            "source_shares": (K,),
        }
        if self.target_shares is not None:
            expected["target_shares"] = (K,)
        for name, shape in expected.items():
            if getattr(self, name).shape != shape:
                raise invalid(name, expected=f"shape {shape}", got=getattr(self, name).shape, advice=_ADVICE)

    @classmethod
    def from_counts(
        cls,
        source: TransitionCounts,
        target: TransitionCounts,
        cost: ArrayLike,
        *,
        sigma: float | None,
        channel_names: Sequence[str],
        classes: Sequence[Any],
        source_shares: NDArray[np.float64],
        target_shares: NDArray[np.float64] | None = None,
        smoothing: str = "floor",
        epsilon: float | None = None,
        undone: Sequence[Undone] = (),
    ) -> Self:
        """Compare counts (D, n_c, n_c); without a `sigma` all channels have weight 1."""
        rows = row_distances(source, target, cost, smoothing, epsilon)
        unread = unread_channels(source, target)
        return cls(
            tuple(str(label) for label in classes),
            tuple(channel_names),
            source.counts,
            target.counts,
            rows,
            np.ones(len(rows)) if sigma is None else channel_weights(rows.mean(axis=1), sigma, unread),
            source_shares,
            target_shares,
            tuple(undone),
        )

    @property
    def distances(self) -> NDArray[np.float64]:
        """How far each channel moved, (D,)."""
        return self.row_distances.mean(axis=-1)

    @property
    def unread(self) -> NDArray[np.bool_]:
        """Channels whose distance says nothing, (D,), see `transpl.markov.unread_channels`."""
        return unread_channels(TransitionCounts(self.source_counts), TransitionCounts(self.target_counts))

    @property
    def ranks(self) -> NDArray[np.int64]:
        """1 for the channel that moved most, (D,); ties go to the first channel."""
        ranks = np.empty(len(self.weights), np.int64)
        ranks[self._order()] = np.arange(1, len(ranks) + 1)
        return ranks

    @property
    def source_probabilities(self) -> NDArray[np.float64]:
        """p(j | i), (D, n_c, n_c); the row of a code that never occurred is all zero."""
        return TransitionCounts(self.source_counts).probabilities("none")

    @property
    def target_probabilities(self) -> NDArray[np.float64]:
        """p(j | i), (D, n_c, n_c); the row of a code that never occurred is all zero."""
        return TransitionCounts(self.target_counts).probabilities("none")

    @property
    def visited(self) -> NDArray[np.float64]:
        """The share of the target's transitions that leave code i, (D, n_c)."""
        leaving = self.target_counts.sum(axis=-1)
        return leaving / np.maximum(leaving.sum(axis=-1, keepdims=True), 1)

    def channels(self) -> pd.DataFrame:
        """One row per channel, the one that moved most first: rank, channel, distance, weight."""
        order = self._order()
        return pd.DataFrame(
            {
                "rank": self.ranks[order],
                "channel": [self.channel_names[d] for d in order],
                "distance": self.distances[order],
                "weight": self.weights[order],
            }
        )

    def transitions(self, n: int = 5) -> pd.DataFrame:
        """The n code transitions of each channel that moved most, channels in the order of `channels`.

        Returns
        -------
        DataFrame
            source, target : the probability of to_code after from_code; 0 if from_code never occurred.
            difference : target - source.
            visited : the share of the target's transitions that leave from_code.
            moved : visited * abs(difference), by which rows are sorted: rare transitions come late.
            row_share : the share of the channel's distance that comes from from_code's row.
        """
        tables = [self._transitions(d, n) for d in self._order()]
        return pd.concat([table for table in tables if len(table)] or tables[:1], ignore_index=True)

    def shares(self) -> pd.DataFrame:
        """One row per class: its share in the source and its estimated share in the target (NaN without estimate)."""
        unknown = np.full(len(self.classes), np.nan)
        target = unknown if self.target_shares is None else self.target_shares
        return pd.DataFrame({"class": self.classes, "source": self.source_shares, "target_estimate": target})

    def as_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        target = None if self.target_shares is None else self.target_shares.tolist()
        return {
            "format": _FORMAT,
            "classes": list(self.classes),
            "channel_names": list(self.channel_names),
            "distances": self.distances.tolist(),
            "weights": self.weights.tolist(),
            "ranks": self.ranks.tolist(),
            "source_shares": self.source_shares.tolist(),
            "target_shares": target,
            "target_shares_are": "mean of the probabilities over the target's windows, an estimate",
            "undone": [asdict(one) for one in self.undone],
            "row_distances": self.row_distances.tolist(),
            "source_counts": self.source_counts.tolist(),
            "target_counts": self.target_counts.tolist(),
        }

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> Self:
        """Make the report from the result of `as_dict`; other data raises a ValueError, TypeError or KeyError."""
        if value["format"] != _FORMAT:
            raise KeyError("format")
        return cls(
            tuple(value["classes"]),
            tuple(value["channel_names"]),
            np.array(value["source_counts"], np.int64),
            np.array(value["target_counts"], np.int64),
            np.array(value["row_distances"], np.float64),
            np.array(value["weights"], np.float64),
            np.array(value["source_shares"], np.float64),
            None if value["target_shares"] is None else np.array(value["target_shares"], np.float64),
            tuple(Undone(**one) for one in value.get("undone", ())),  # older files have none
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything to one JSON file, atomically."""
        write_json(path, self.as_dict())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read what `save` wrote; other or damaged files are refused."""
        value = read_json(path)
        try:
            return cls.from_dict(value)
        except (KeyError, TypeError, ValueError, IndexError, OverflowError) as error:
            problem = f"not a shift report, or damaged ({type(error).__name__}: {error})"
            raise unreadable_file(path, problem=problem, advice="Write it with ShiftReport.save.") from None

    def _order(self) -> NDArray[np.int64]:
        return np.argsort(-self.distances, kind="stable")

    def _transitions(self, d: int, n: int) -> pd.DataFrame:
        p, q, visited = self.source_probabilities[d], self.target_probabilities[d], self.visited[d]
        moved = visited[:, None] * np.abs(q - p)
        i, j = np.unravel_index(np.argsort(-moved, axis=None, kind="stable")[:n], moved.shape)
        kept = moved[i, j] > 0
        i, j = i[kept], j[kept]
        rows = self.row_distances[d]
        return pd.DataFrame(
            {
                "channel": self.channel_names[d],
                "from_code": i,
                "to_code": j,
                "source": p[i, j],
                "target": q[i, j],
                "difference": q[i, j] - p[i, j],
                "visited": visited[i],
                "moved": moved[i, j],
                "row_share": rows[i] / max(rows.sum(), np.finfo(float).tiny),
            }
        )
