"""Batch normalisation that survives a batch of one row."""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn import functional as F


class BatchNorm(nn.BatchNorm1d):
    r"""y = (x - \mu) / \sqrt{v + \epsilon} * \gamma + \beta; \mu and v of the batch in training, running ones at rest.

    One value per channel has no variance: a training batch of a single row (1, C) is taken as if at rest, and leaves
    the running statistics alone.
    """

    def forward(self, x: Tensor) -> Tensor:
        """x (B, C) or (B, C, T) -> the same shape."""
        if not self.training or x.numel() > self.num_features:
            return super().forward(x)
        mean, variance = self.running_mean, self.running_var
        assert mean is not None
        assert variance is not None
        # Copies: the next batch of the same step may move the statistics, which this batch's gradient still needs.
        return F.batch_norm(x, mean.clone(), variance.clone(), self.weight, self.bias, eps=self.eps)
