"""What TransPL sees of windows: codes of its source network, their transitions, and how far channels moved."""

from __future__ import annotations

import time

import numpy as np
from numpy.typing import NDArray

from transpl import markov
from transpl._utils.errors import InputError
from transpl.markov import SourceCodes
from transpl.methods.base import Method
from transpl.methods.source_model import SourceModel
from transpl.methods.transpl.settings import TransPLSettings
from transpl.methods.transpl.state import TransPLState
from transpl.methods.transpl.vote import Chunks, Codes
from transpl.nn import Execution, coarse_codes, codes_by_book, decoded_codes, reconstruction_error
from transpl.windows import CHUNK, Windows


class CodingMethod(Method):
    """A method that sees windows as codes of its source network, and counts which code follows which."""

    Settings = TransPLSettings
    settings: TransPLSettings

    def __init__(self, settings: TransPLSettings | None = None, execution: Execution | None = None) -> None:
        super().__init__(settings, execution)
        self._state: TransPLState | None = None

    @property
    def state(self) -> TransPLState:
        if self._state is None:
            raise InputError("TransPL is not fitted. Call fit_source first.")
        return self._state

    @state.setter
    def state(self, state: TransPLState) -> None:
        self._state = state

    def start_from(self, model: SourceModel) -> None:
        """Take a trained source network, and count the transitions of the source's codes per class."""
        super().start_from(model)
        network, source = model.network, model.source
        start = time.perf_counter()
        with self.on_device(network):
            codes = codes_by_book(network, source.windows)
        usage = {book: markov.codebook_usage(codes[book], n) for book, n in network.settings.book_sizes.items()}
        coarse = codes["coarse"]
        counts = markov.TransitionCounts.from_codes(coarse, self.settings.n_coarse, source.y, source.n_classes)
        known = SourceCodes.numbered(coarse, source.y, source.n_classes)
        self.state = TransPLState(network, counts, usage, known, history={"source": model.history})
        self.state.seconds = {"source": model.seconds, "count_source": time.perf_counter() - start}

    def number_source_rows(self, rows: NDArray[np.integer]) -> None:
        """Give the source's windows the row numbers that the caller knows them by."""
        state = self.state
        if state.source_codes is not None:
            state.source_codes = state.source_codes.of_rows(rows)

    def codes(self, windows: Windows) -> Codes:
        """Coarse codes (n, D, N) by the source network."""
        network = self.state.source_network
        with self.on_device(network):
            return coarse_codes(network, windows)

    def count(self, windows: Windows) -> markov.TransitionCounts:
        """Transition counts (D, n_c, n_c) of windows: one pass of the encoder, one chunk in memory."""
        first, *others = (self.count_codes(codes) for _, codes in self.encoded(windows))
        return sum(others, start=first)

    def count_codes(self, codes: Codes) -> markov.TransitionCounts:
        """Transition counts (D, n_c, n_c) of codes."""
        return markov.TransitionCounts.from_codes(codes, self.settings.n_coarse)

    def encoded(self, windows: Windows) -> Chunks:
        """The codes of one chunk of windows after the other, each with its rows."""
        return ((rows, self.codes(part)) for rows, part in windows.chunks(CHUNK))

    @property
    def n_classes(self) -> int:
        return int(self.state.class_counts.counts.shape[0])

    @property
    def codebook(self) -> NDArray[np.float64]:
        """Coarse code vectors (n_c, d)."""
        return self.state.source_network.quantizer.coarse.vectors.detach().cpu().double().numpy()

    @property
    def decoded_codes(self) -> dict[str, NDArray[np.float64]]:
        """What the decoder makes of each code alone: "coarse" (n_c, m) and, with such a book, "fine" (n_f, m)."""
        network = self.state.source_network
        with self.on_device(network):
            return decoded_codes(network)

    def channel_distances(self, target_counts: markov.TransitionCounts) -> NDArray[np.float64]:
        """How far each channel's transitions moved from the source's, (D,)."""
        return markov.channel_distances(
            self.state.class_counts.pooled(),
            target_counts,
            markov.transport_cost(self.codebook),
            self.settings.smoothing,
            self.settings.epsilon,
        )

    def channel_weights(self, target_counts: markov.TransitionCounts) -> NDArray[np.float64]:
        """How far each channel is trusted, (D,); all ones without channel alignment."""
        if not self.settings.channel_alignment:
            return np.ones(target_counts.n_channels)
        return self.trust(self.channel_distances(target_counts))

    def trust(self, distances: NDArray[np.float64]) -> NDArray[np.float64]:
        """Channel weights (D,) of distances that are known already."""
        if not self.settings.channel_alignment:
            return np.ones(len(distances))
        return markov.channel_weights(distances, self.settings.sigma)

    def reconstruction_error(self, windows: Windows) -> float:
        """Mean of (X - D(q))^2 by the source network."""
        network = self.state.source_network
        with self.on_device(network):
            return reconstruction_error(network, windows)


def in_chunks(codes: Codes) -> Chunks:
    """The codes of windows that were encoded before, one chunk after the other, each with its rows."""
    parts = (slice(first, first + CHUNK) for first in range(0, len(codes), CHUNK))
    return ((rows, codes[rows]) for rows in parts)
