r"""Codes made visible: what the decoder makes of a code. What a code is decoded *in* decides what is seen:

"alone"    x_c = D(l2(e_c)), x_f = D(l2(e_f)): one patch that holds this code's vector and nothing else. It depends on
           no other code, but the decoder was trained on sequences of l2(e_c) + l2(e_f): it extrapolates.
"source"   x_c = mean of D(q)_{n,d,t} over the patches of the source whose coarse code is c, and x_f likewise: what
           the decoder makes of the code where it really occurs, other codes around it included.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from transpl._utils.errors import check_choice
from transpl.methods import TransPLMethod
from transpl.nn import Network, in_batches
from transpl.report.studies.subject import Subject
from transpl.windows import Windows

CONTEXTS = ("alone", "source")

Decoded = dict[str, NDArray[np.float64]]  # "coarse" (n_c, m) and, if there is a fine book, "fine" (n_f, m)


def codes_study(subject: Subject, context: str = "alone") -> dict[str, Any]:
    """Per book and code: its values (m,), and which share of the source's patches it stands for.

    Values are None for a code that does not occur in the windows at hand, in context "source".
    """
    check_choice("context", context, CONTEXTS)
    method, usage = subject.method, subject.method.state.codebook_usage
    decoded = method.decoded_codes if context == "alone" else decoded_in_place(method, subject.windows.source)
    return {
        "name": subject.name,
        "context": context,
        "books": {
            book: [
                {"code": code, "share": float(share), "values": None if np.isnan(x).any() else x.tolist()}
                for code, (share, x) in enumerate(zip(_shares(usage[book].counts), values, strict=True))
            ]
            for book, values in decoded.items()
        },
    }


def decoded_in_place(method: TransPLMethod, windows: Windows) -> Decoded:
    """The mean of D(q) over the patches of each code; NaN for codes that do not occur."""
    network = method.state.source_network
    with method.on_device(network):
        found = in_batches(network, windows, _decoded_and_codes(network))  # (n, D, N, m + books)
    m, sizes = network.settings.patch_length, {"coarse": network.settings.n_coarse, "fine": network.settings.n_fine}
    return {
        name: _means_by_code(found[..., m + number].astype(np.int64).ravel(), found[..., :m].reshape(-1, m), size)
        for number, (name, size) in enumerate(sizes.items())
        if size
    }


def _decoded_and_codes(network: Network) -> Any:
    def side_by_side(x: Tensor, lengths: Tensor | None) -> Tensor:
        out = network(x, lengths)
        codes = [codes for codes in (out.coarse_codes, out.fine_codes) if codes is not None]
        return torch.cat([out.reconstruction, *(each[..., None].to(out.reconstruction) for each in codes)], dim=-1)

    return side_by_side


def _means_by_code(codes: NDArray[np.int64], values: NDArray[np.float64], n_codes: int) -> NDArray[np.float64]:
    """codes (P,), -1 for none; values (P, m) -> (n_codes, m)."""
    sums = np.zeros((n_codes, values.shape[1]))
    np.add.at(sums, codes[codes >= 0], values[codes >= 0])
    counts = np.bincount(codes[codes >= 0], minlength=n_codes)[:, None]
    return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)


def _shares(counts: NDArray[np.int64]) -> NDArray[np.float64]:
    return counts / max(1, int(counts.sum()))
