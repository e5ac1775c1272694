"""An explanation as one npz file: arrays as they are, the rest as JSON text in one of them; no pickle."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from transpl._utils.errors import UnreadableFile, unreadable_file
from transpl._utils.files import read_npz, replacing
from transpl.markov.explanation.nearest import NearestWindows

if TYPE_CHECKING:
    from transpl.markov.explanation.base import BaseExplanation

    AnyExplanation = TypeVar("AnyExplanation", bound=BaseExplanation)

# Older versions had votes that were joined otherwise; their files cannot be told apart into the parts of this one.
_RETIRED = {"vote": "mean", "sharpness": 1.0, "classifier_sharpness": None, "temper": 1.0}


def load_explanation(path: str | os.PathLike[str]) -> BaseExplanation:
    """Read an explanation of either kind; a damaged or foreign file is refused, and nothing in it is executed."""
    from transpl.markov.explanation.council import CouncilExplanation  # both kinds save themselves with this module
    from transpl.markov.explanation.explanation import Explanation

    return read_explanation(path, Explanation, CouncilExplanation)


def write_explanation(path: str | os.PathLike[str], explanation: BaseExplanation) -> None:
    """Write all fields, atomically."""
    arrays = {name: getattr(explanation, name) for name in explanation.ARRAYS}
    arrays = {name: values for name, values in arrays.items() if values is not None}
    about: dict[str, Any] = {
        "format": explanation.FORMAT,
        "classes": {"dtype": explanation.classes.dtype.str, "values": explanation.classes.tolist()},
        "channel_names": list(explanation.channel_names),
        **{name: getattr(explanation, name) for name in explanation.PLAIN},
    }
    if explanation.nearest is not None:
        arrays |= {"nearest_rows": explanation.nearest.rows, "nearest_distances": explanation.nearest.distances}
        about["nearest_labels"] = explanation.nearest.labels.tolist()
    with replacing(path) as part, open(part, "wb") as stream:
        np.savez_compressed(stream, about=_as_bytes(about), **arrays)


def read_explanation(path: str | os.PathLike[str], *kinds: type[AnyExplanation]) -> AnyExplanation:
    """Read what `write_explanation` wrote of one of these kinds, or complain in one line."""
    arrays = read_npz(path)
    try:
        about = json.loads(arrays.pop("about").tobytes())
        kind = next((kind for kind in kinds if about["format"] == kind.FORMAT), None)
        if kind is None:
            raise KeyError("format")
        if any(about.get(name, left) != left for name, left in _RETIRED.items()):
            raise ValueError("of a vote that this version does not have")
        return kind(**_fields(kind, about, arrays))
    except UnreadableFile:
        raise
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        problem = f"not an explanation, or damaged ({type(error).__name__}: {error})"
        raise unreadable_file(path, problem=problem, advice="Write it with Explanation.save.") from None


def _fields(kind: type[BaseExplanation], about: dict[str, Any], arrays: dict[str, NDArray]) -> dict[str, Any]:
    dtype = np.dtype(about["classes"]["dtype"])
    return {
        **{name: arrays[name] for name in kind.ARRAYS if name in arrays},
        **{name: about[name] for name in kind.PLAIN},
        "classes": np.array(about["classes"]["values"], dtype),
        "channel_names": tuple(about["channel_names"]),
        "nearest": _nearest(about, arrays, dtype) if "nearest_labels" in about else None,
    }


def _nearest(about: dict[str, Any], arrays: dict[str, NDArray], dtype: np.dtype) -> NearestWindows:
    rows = arrays["nearest_rows"]
    labels = np.array(about["nearest_labels"], dtype).reshape(rows.shape)  # a list of no rows has lost its width
    return NearestWindows(rows, labels, arrays["nearest_distances"])


def _as_bytes(about: dict[str, Any]) -> NDArray[np.uint8]:
    return np.frombuffer(json.dumps(about, ensure_ascii=False, allow_nan=False).encode(), np.uint8)
