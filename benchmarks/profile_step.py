"""Where a training step spends its time: python -m benchmarks.profile_step

Shares of the profiled time on one thread. The profiler does not see single operations in numpy (drawing and applying
dropout masks, moving heads): they count as own time of the nodes that call them.
"""

from __future__ import annotations

from collections import defaultdict

import torch
from torch.profiler import ProfilerActivity, profile

from benchmarks.speed import BATCH, CHANNELS, TIME, train_step
from transpl.nn import Network, NetworkSettings

STEPS = 20
GROUPS = {
    "matrix products": (
        "aten::mm",
        "aten::bmm",
        "aten::addmm",
        "aten::mv",
        "aten::addmv_",
        "mkldnn::_linear_pointwise",
    ),
    "GELU": ("aten::gelu", "aten::gelu_backward"),
    "layer normalisation": ("aten::native_layer_norm", "aten::native_layer_norm_backward"),
    "softmax": ("aten::exp_", "aten::aminmax", "aten::div_", "aten::sub_", "aten::_softmax"),
    "dropout masks and moving heads (numpy)": ("FusedAttention", "FusedFeedForward", "MaskedScale"),
    "adding and multiplying": ("aten::add", "aten::add_", "aten::mul", "aten::mul_", "aten::sub", "aten::sum"),
    "optimiser": ("Optimizer", "aten::_fused_adamw_"),
}


def main() -> None:
    torch.set_num_threads(1)
    torch.manual_seed(0)
    batch = {"x": torch.randn(BATCH, CHANNELS, TIME), "y": torch.randint(0, 6, (BATCH,))}
    step = train_step(Network(NetworkSettings(n_classes=6)), batch)
    for _ in range(3):
        step()
    with profile(activities=[ProfilerActivity.CPU]) as profiler:
        for _ in range(STEPS):
            step()
    milliseconds: dict[str, float] = defaultdict(float)
    for event in profiler.key_averages():
        milliseconds[group_of(event.key)] += event.self_cpu_time_total / 1e3 / STEPS
    total = sum(milliseconds.values())
    for name, value in sorted(milliseconds.items(), key=lambda item: -item[1]):
        print(f"{name:<42}{value:8.1f} ms{value / total:8.1%}")


def group_of(operation: str) -> str:
    for group, operations in GROUPS.items():
        if operation in operations or any(operation == f"{name}Backward" for name in operations):
            return group
    return "optimiser" if operation.startswith("Optimizer") else "everything else"


if __name__ == "__main__":
    main()
