"""Windows from the pandas formats of sktime. Its numpy3D, and aeon's arrays and lists, need no conversion."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from transpl._utils.errors import invalid

_ADVICE = "Pass a nested DataFrame, one with a MultiIndex (instance, time), or a list of DataFrames (time, channels)."


def from_sktime(X: pd.DataFrame | Sequence[pd.DataFrame]) -> NDArray[np.float32] | list[NDArray[np.float32]]:
    """Convert a collection of series in a pandas format of sktime to windows.

    Parameters
    ----------
    X : DataFrame or list of DataFrame
        "nested_univ": a row per window, a column per channel, and a Series in every cell. "pd-multiindex": an index
        (instance, time) and a column per channel. "df-list": a DataFrame (time, channels) per window.

    Returns
    -------
    array (n, channels, time), or list of arrays (channels, T_i)
        A list if windows differ in length.

    Examples
    --------
    >>> nested = pd.DataFrame({"ax": [pd.Series([1.0, 2.0]), pd.Series([3.0, 4.0])]})
    >>> from_sktime(nested).shape
    (2, 1, 2)
    """
    if isinstance(X, pd.DataFrame):
        windows: list[NDArray[np.float32]] = (
            _from_multiindex(X) if isinstance(X.index, pd.MultiIndex) else _from_nested(X)
        )
    elif isinstance(X, list | tuple) and X and all(isinstance(frame, pd.DataFrame) for frame in X):
        windows = [_numbers(frame.to_numpy()).T for frame in X]
    else:
        raise invalid("X", expected="a pandas format of sktime", got=type(X).__name__, advice=_ADVICE)
    return np.stack(windows) if len({window.shape for window in windows}) == 1 else windows


def _from_nested(X: pd.DataFrame) -> list[NDArray[np.float32]]:
    windows: list[NDArray[np.float32]] = []
    for row in X.itertuples(index=False, name=None):
        if not all(isinstance(cell, pd.Series | np.ndarray) for cell in row):
            got = f"a cell of type {next(type(c).__name__ for c in row if not isinstance(c, pd.Series | np.ndarray))}"
            raise invalid("X", expected="a Series in every cell", got=got, advice=_ADVICE)
        if len({len(cell) for cell in row}) > 1:
            got = f"lengths {sorted({len(cell) for cell in row})} in window {len(windows)}"
            raise invalid("X", expected="channels of one length", got=got, advice="Resample them to one rate.")
        windows.append(np.stack([_numbers(np.asarray(cell)) for cell in row]))
    return windows


def _from_multiindex(X: pd.DataFrame) -> list[NDArray[np.float32]]:
    if X.index.nlevels != 2:
        got = f"{X.index.nlevels} levels"
        raise invalid("X", expected="an index (instance, time)", got=got, advice="Drop the outer levels.")
    return [_numbers(frame.sort_index().to_numpy()).T for _, frame in X.groupby(level=0, sort=False)]


def _numbers(values: Any) -> NDArray[np.float32]:
    try:
        return np.asarray(values).astype(np.float32)
    except (TypeError, ValueError) as error:
        raise invalid("X", expected="numbers", got=error, advice="Leave other columns out.") from None
