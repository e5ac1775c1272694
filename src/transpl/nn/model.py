"""The model: patches, encoder, residual quantiser, decoder and class head (paper, figure 1 A)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from transpl._utils.errors import check_choice, check_fraction, check_int, check_not_negative, invalid
from transpl.nn.layers import Transformer, attention_bias, sinusoids
from transpl.nn.quantizer import RESIDUALS, ResidualQuantizer

_Module = TypeVar("_Module", bound=nn.Module)


@dataclass(frozen=True)
class NetworkSettings:
    """The shape of a network; the paper's values by default."""

    n_classes: int
    patch_length: int = 8
    width: int = 64
    n_coarse: int = 8
    n_fine: int = 64
    n_layers: int = 2
    n_heads: int = 8
    dropout: float = 0.3
    commitment: float = 0.25
    residual: str = "normalised"
    cls_trainable: bool = False

    def __post_init__(self) -> None:
        check_choice("residual", self.residual, RESIDUALS)
        check_choice("cls_trainable", self.cls_trainable, (True, False))
        for name in ("patch_length", "width", "n_layers", "n_heads"):
            check_int(name, getattr(self, name), least=1)
        check_int("n_coarse", self.n_coarse, least=2)
        check_int("n_fine", self.n_fine, least=0)
        check_int("n_classes", self.n_classes, least=2)
        check_fraction("dropout", self.dropout, zero=True)
        check_not_negative("commitment", self.commitment)
        if self.width % self.n_heads:
            raise invalid(
                "width", expected=f"a multiple of n_heads={self.n_heads}", got=self.width, advice="Try 64 or 128."
            )

    @property
    def book_sizes(self) -> dict[str, int]:
        """How many codes each book has, the coarse one first; there may be no fine one."""
        return {"coarse": self.n_coarse} | ({"fine": self.n_fine} if self.n_fine else {})

    def build(self) -> Network:
        """A network of this shape with random weights."""
        return Network(self)


def with_weights(build: Callable[[], _Module], weights: Mapping[str, Tensor]) -> _Module:
    """Build a module that has these weights, in eval mode; others than it has, or NaN, raise a RuntimeError."""
    with torch.device("meta"):  # no weights are drawn: all of them are given, or loading fails
        module = build()
    for name, expected in module.state_dict().items():
        given = weights.get(name, expected)
        if given.dtype != expected.dtype or not (given.is_meta or torch.isfinite(given).all()):
            raise RuntimeError(f"{name}: expected finite numbers of {expected.dtype}, got {given.dtype}")
    module.load_state_dict(dict(weights), assign=True)
    return module.eval()


class Encoded(NamedTuple):
    """Output of the encoder for a batch."""

    summary: Tensor  # (B, D, d): one [CLS] vector per channel
    latents: Tensor  # (B, D, N, d): one vector per patch


class NetworkOutput(NamedTuple):
    """One full pass over a batch."""

    encoded: Encoded
    features: Tensor  # (B, d): z, the mean of the summaries over channels
    logits: Tensor  # (B, K)
    coarse_codes: Tensor  # (B, D, N); -1 where a shorter window has no patch
    fine_codes: Tensor | None  # (B, D, N), or None without a fine book
    reconstruction: Tensor  # (B, D, N, m)
    code_loss: Tensor  # ()
    reconstruction_loss: Tensor  # ()


class Classifier(nn.Module, ABC):
    """Computes features and, from them, class logits. `Network` is one; a method may have its own."""

    @abstractmethod
    def features(self, x: Tensor, lengths: Tensor | None = None) -> Tensor:
        """x (B, D, T), lengths (B,) where windows are of unequal length -> z (B, width)."""

    @abstractmethod
    def logits(self, z: Tensor) -> Tensor:
        """z (B, width) -> (B, K)."""

    def classify(self, x: Tensor, lengths: Tensor | None = None) -> Tensor:
        """x (B, D, T), lengths (B,) where windows are of unequal length -> class logits (B, K)."""
        return self.logits(self.features(x, lengths))


class BackboneSettings(Protocol):
    """The shape of a backbone: a frozen dataclass."""

    @property
    def n_classes(self) -> int: ...

    @property
    def width(self) -> int:
        """The size of the features."""

    def build(self) -> Backbone:
        """A backbone of this shape with random weights."""


class Backbone(Classifier):
    """An encoder and a class head that every method can start from.

    Attributes
    ----------
    settings
        its shape
    head
        from features to class logits; the last module is linear
    """

    settings: BackboneSettings
    head: nn.Sequential

    @abstractmethod
    def encode(self, x: Tensor, lengths: Tensor | None = None) -> Encoded:
        """x (B, D, T) -> summary (B, D', d) and latents (B, D', N, d); D' is 1 where channels are encoded together."""

    def features(self, x: Tensor, lengths: Tensor | None = None) -> Tensor:
        """x (B, D, T) -> z (B, d), the mean of the summaries over channels."""
        return self.encode(x, lengths).summary.mean(dim=1)

    def hidden(self, z: Tensor) -> Tensor:
        """z (B, d) -> input of the head's last layer."""
        return self.head[:-1](z)

    def logits(self, z: Tensor) -> Tensor:
        """z (B, d) -> class logits (B, K)."""
        return self.head(z)

    def code_modules(self) -> list[nn.Module]:
        """The parts that classification does not need."""
        return []

    def start_from(self, x: Tensor, lengths: Tensor | None = None, *, seed: int) -> None:
        """Start what depends on data from a first batch x (B, D, T)."""


class Network(Backbone):
    """Encoder, quantiser, decoder and class head; every channel is encoded on its own with shared weights."""

    settings: NetworkSettings

    def __init__(self, settings: NetworkSettings) -> None:
        super().__init__()
        self.settings = settings
        m, d = settings.patch_length, settings.width
        self.embed = nn.Sequential(nn.Linear(m, d), nn.GELU(), nn.LayerNorm(d))
        cls = nn.Parameter(torch.randn(d) * 0.02)
        if settings.cls_trainable:
            self.cls = cls
        else:
            self.register_buffer("cls", cls.detach())
        self.encoder = Transformer(d, settings.n_layers, settings.n_heads, settings.dropout)
        self.quantizer = ResidualQuantizer(
            settings.n_coarse, settings.n_fine, d, settings.commitment, settings.residual
        )
        self.decoder = Transformer(d, settings.n_layers, settings.n_heads, settings.dropout)
        self.to_patch = nn.Sequential(nn.Linear(d, d), nn.Tanh(), nn.Linear(d, m))
        self.head = nn.Sequential(nn.Linear(d, d), nn.ReLU(), nn.Linear(d, settings.n_classes))

    def forward(self, x: Tensor, lengths: Tensor | None = None) -> NetworkOutput:
        """x (B, D, T), lengths (B,) where windows are of unequal length."""
        patches = to_patches(x, self.settings.patch_length)
        mask = self._mask(patches, lengths)
        encoded = self._encode_patches(patches, mask)
        coarse, fine, q, code_loss = self._quantize(encoded.latents, mask)
        reconstruction = self._decode(q, mask)
        z = encoded.summary.mean(dim=1)
        return NetworkOutput(
            encoded,
            z,
            self.head(z),
            coarse,
            fine,
            reconstruction,
            code_loss,
            _masked_mse(reconstruction, patches, mask),
        )

    def encode(self, x: Tensor, lengths: Tensor | None = None) -> Encoded:
        """x (B, D, T) -> summary (B, D, d) and latents (B, D, N, d)."""
        patches = to_patches(x, self.settings.patch_length)
        return self._encode_patches(patches, self._mask(patches, lengths))

    def code_modules(self) -> list[nn.Module]:
        """The parts that classification does not need: quantiser and decoder."""
        return [self.quantizer, self.decoder, self.to_patch]

    def codes(self, x: Tensor, lengths: Tensor | None = None) -> Tensor:
        """x (B, D, T) -> coarse codes (B, D, N); -1 where a shorter window has no patch."""
        patches = to_patches(x, self.settings.patch_length)
        mask = self._mask(patches, lengths)
        codes = self.quantizer.coarse.nearest(self._encode_patches(patches, mask).latents)
        return codes if mask is None else codes.masked_fill(~mask[:, None, :], -1)

    def codes_by_book(self, x: Tensor, lengths: Tensor | None = None) -> Tensor:
        """x (B, D, T) -> codes (B, books, D, N), the coarse book's first; -1 where a shorter window has no patch."""
        patches = to_patches(x, self.settings.patch_length)
        mask = self._mask(patches, lengths)
        latents, quantizer = self._encode_patches(patches, mask).latents, self.quantizer
        found = [quantizer.coarse.nearest(latents)]
        if quantizer.fine is not None:
            found.append(quantizer.fine.nearest(quantizer.residual(latents, found[0])))
        codes = torch.stack(found, dim=1)
        return codes if mask is None else codes.masked_fill(~mask[:, None, None, :], -1)

    def decode(self, q: Tensor) -> Tensor:
        """Quantised patches (S, N, d) of S sequences -> their values (S, N, m)."""
        return self._decode(q[:, None], None)[:, 0]

    @torch.no_grad()
    def start_from(self, x: Tensor, lengths: Tensor | None = None, *, seed: int) -> None:
        """Start both codebooks by k-means on the latents of a first batch x (B, D, T)."""
        was_training = self.training
        self.eval()
        patches = to_patches(x, self.settings.patch_length)
        mask = self._mask(patches, lengths)
        latents = self._encode_patches(patches, mask).latents
        real = latents.flatten(0, 2) if mask is None else latents[_over_channels(mask, latents)]
        if not torch.isfinite(real).all():
            raise invalid(
                "X", expected="values of moderate size", got="an overflow", advice="Rescale X to unit variance."
            )
        self.quantizer.start_from(real, seed)
        self.train(was_training)

    def _mask(self, patches: Tensor, lengths: Tensor | None) -> Tensor | None:
        """(B, N), true for real patches; None if all are."""
        return None if lengths is None else patch_mask(lengths, self.settings.patch_length, patches.shape[2])

    def _encode_patches(self, patches: Tensor, mask: Tensor | None) -> Encoded:
        B, D, N, _ = patches.shape
        tokens = self.embed(patches).flatten(0, 1)  # (B*D, N, d)
        cls = self.cls.expand(B * D, 1, -1)
        bias = None
        if mask is not None:
            bias = attention_bias(F.pad(mask, (1, 0), value=True).repeat_interleave(D, dim=0))
        x = torch.cat([cls, tokens], dim=1)  # (B*D, N+1, d)
        encoded = self.encoder(x + sinusoids(*x.shape[1:]).to(x), bias).view(B, D, N + 1, -1)
        summary, latents = encoded.split([1, N], dim=2)
        return Encoded(summary[:, :, 0], latents)

    def _quantize(self, latents: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor | None, Tensor, Tensor]:
        """latents (B, D, N, d) -> coarse and fine codes (B, D, N), q (B, D, N, d), loss ()."""
        real = None if mask is None else _over_channels(mask, latents)
        coarse, fine = self.quantizer(latents if real is None else latents[real])
        q, loss = coarse.vectors, coarse.loss
        if fine is not None:
            q, loss = q + fine.vectors, loss + fine.loss
        if real is None:
            return coarse.codes, None if fine is None else fine.codes, q, loss
        whole = q.new_zeros(latents.shape).masked_scatter(real[..., None], q)
        return _spread(coarse.codes, real), None if fine is None else _spread(fine.codes, real), whole, loss

    def _decode(self, q: Tensor, mask: Tensor | None) -> Tensor:
        B, D, N, d = q.shape
        bias = None if mask is None else attention_bias(mask.repeat_interleave(D, dim=0))
        return self.to_patch(self.decoder(q.reshape(B * D, N, d), bias)).view(B, D, N, -1)


def to_patches(x: Tensor, patch_length: int) -> Tensor:
    """X (B, D, T) -> (B, D, N, m) with N = floor(T / m); the tail that fills no patch is dropped."""
    B, D, T = x.shape
    N = T // patch_length
    return x[..., : N * patch_length].reshape(B, D, N, patch_length)


def patch_mask(lengths: Tensor, patch_length: int, n_patches: int) -> Tensor:
    """(B,) real lengths -> (B, N), true where a patch lies wholly inside its window."""
    whole = torch.div(lengths, patch_length, rounding_mode="floor")
    return torch.arange(n_patches, device=lengths.device) < whole[:, None]


def _over_channels(mask: Tensor, latents: Tensor) -> Tensor:
    """(B, N) -> (B, D, N)."""
    return mask[:, None, :].expand(latents.shape[:3])


def _spread(codes: Tensor, real: Tensor) -> Tensor:
    """Codes of the real patches -> (B, D, N) with -1 elsewhere."""
    return codes.new_full(real.shape, -1).masked_scatter(real, codes)


def _masked_mse(reconstruction: Tensor, patches: Tensor, mask: Tensor | None) -> Tensor:
    """Mean of (X - D(q))^2 over the values of real patches; ()."""
    if mask is None:
        return F.mse_loss(reconstruction, patches)
    squares = (reconstruction - patches).square().mean(dim=(1, 3))  # (B, N)
    return (squares * mask).sum() / mask.sum()
