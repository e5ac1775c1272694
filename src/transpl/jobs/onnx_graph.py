"""The graph of an exported model in ONNX, in the standard operators alone.

The same computations as in `numpy_predictor`, for windows of one length and any number of them. Numbers are float64
where numpy has float64, so that answers agree to rounding.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import ModelProto, TensorProto, checker, helper, numpy_helper

from transpl._utils.layout import without_prefix

OPSET = 20
_IR_VERSION = 9  # what opset 20 came with, so that older runtimes read it too
_IMPOSSIBLE = -1e100  # for log 0, because runtimes differ in how they add infinities
_DOUBLE, _FLOAT, _INT = TensorProto.DOUBLE, TensorProto.FLOAT, TensorProto.INT64

Arrays = dict[str, NDArray]
Value = Any  # the name of a value in the graph, or an array or number, which becomes a constant


class _Graph:
    """Collects nodes and constants."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def __call__(self, op: str, *inputs: Value, n: int = 1, **attributes: Any) -> Any:
        """Add a node; returns the name of its output, or of its n outputs."""
        names = [each if isinstance(each, str) else self.constant(each) for each in inputs]
        outputs = [f"v{len(self.nodes)}_{i}" for i in range(n)]
        self.nodes.append(helper.make_node(op, names, outputs, **attributes))
        return outputs[0] if n == 1 else outputs

    def constant(self, value: Any) -> str:
        """Add a constant; whole numbers are int64."""
        array = np.ascontiguousarray(value)
        name = f"c{len(self.constants)}"
        if array.dtype.kind == "U":
            made = helper.make_tensor(name, TensorProto.STRING, array.shape, [text.encode() for text in array.ravel()])
        else:
            array = array.astype(np.int64) if array.dtype.kind in "iu" else array
            made = numpy_helper.from_array(array.reshape(np.shape(value)), name)
        self.constants.append(made)
        return name

    def cast(self, x: Value, to: int) -> str:
        return self("Cast", x, to=to)

    def sum(self, x: Value, axis: int, keep: bool = False) -> str:
        return self("ReduceSum", x, [axis], keepdims=int(keep))

    def mean(self, x: Value, axis: int, keep: bool = False) -> str:
        return self("ReduceMean", x, [axis], keepdims=int(keep))

    def cut(self, x: Value, first: int, end: int, axis: int) -> str:
        return self("Slice", x, [first], [end], [axis])

    def softmax(self, x: Value, axis: int) -> str:
        """Written out, because the operator rounds in another way than numpy."""
        e = self("Exp", self("Sub", x, self("ReduceMax", x, [axis], keepdims=1)))
        return self("Div", e, self.sum(e, axis, keep=True))

    def normalised(self, p: Value, n_classes: int) -> str:
        """p (n, K) divided by its sum, which adds up in the order of numpy.

        Answers at the limit of certainty are told apart by their last bit, so that even the order of a sum matters.
        """
        columns = [self.cut(p, k, k + 1, 1) for k in range(n_classes)]
        whole = n_classes // 8 * 8
        sums = columns[:8] if whole else []
        for k in range(8, whole):
            sums[k % 8] = self("Add", sums[k % 8], columns[k])
        while len(sums) > 1:
            sums = [self("Add", a, b) for a, b in zip(sums[::2], sums[1::2], strict=True)]
        for column in columns[whole:]:
            sums = [self("Add", sums[0], column)] if sums else [column]
        return self("Div", p, sums[0])


def onnx_model(about: dict[str, Any], arrays: Arrays, window: int) -> ModelProto:
    """Build the model of an `ExportedModel` for windows of this length."""
    g = _Graph()
    answer = {"plus": _council, "paper": _network}[about["variant"]]
    p = g("Identity", answer(g, "windows", about, arrays, window))
    classes = np.array(about["classes"])
    labels = g(
        "Gather",
        classes if classes.dtype.kind in "iU" else classes.astype(np.float64),
        g("ArgMax", p, axis=1, keepdims=0),
    )
    g.nodes += [
        helper.make_node("Identity", [p], ["probabilities"]),
        helper.make_node("Identity", [labels], ["labels"]),
    ]
    kind = {"U": TensorProto.STRING, "i": _INT}.get(classes.dtype.kind, _DOUBLE)
    graph = helper.make_graph(
        g.nodes,
        "transpl",
        [helper.make_tensor_value_info("windows", _FLOAT, ["n", about["n_channels"], window])],
        [
            helper.make_tensor_value_info("labels", kind, ["n"]),
            helper.make_tensor_value_info("probabilities", _DOUBLE, ["n", len(classes)]),
        ],
        g.constants,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], producer_name="transpl")
    model.ir_version, model.producer_version = _IR_VERSION, about["transpl_version"]
    checker.check_model(model)
    return model


def _likelihoods(g: _Graph, codes: Value, log_p: NDArray, N: int) -> str:
    """sum_t log p(s_{t+1} | s_t, k, d) of codes (n, D, N), (n, D, K)."""
    K, D, c, _ = log_p.shape
    here, following = g.cut(codes, 0, N - 1, 2), g.cut(codes, 1, N, 2)
    place = g("Add", g("Add", g("Mul", here, c), following), (np.arange(D) * c**2)[:, None])
    return g.sum(g("Gather", np.ascontiguousarray(log_p.reshape(K, -1).T), place), 2)


# variant "plus": the council


def _council(g: _Graph, x: Value, about: dict[str, Any], arrays: Arrays, T: int) -> str:
    for i, shift in enumerate(about["shifts"]):
        x = _undo(g, x, shift, without_prefix(f"shift.{i}", arrays), about["n_channels"])
    views = {view: _viewed(g, x, view, without_prefix(f"view.{view}", arrays)) for view in about["views"]}
    statistics: dict[str, str] = {}
    rows, answers, K = [], [], len(about["classes"])
    for i, (witness, view) in enumerate(about["seats"]):
        seat = without_prefix(f"seat.{i}", arrays)
        if witness == "codes":
            found = _patch_codes(g, views[view], seat, about["n_channels"], T)
            answers.append(_of_codes(g, found, seat, K, T // seat["centres"].shape[1]))
        else:
            if witness == "kernels":
                features = g.cast(_responses(g, views[view], seat, about["n_channels"], T), _DOUBLE)
            else:
                if view not in statistics:
                    statistics[view] = _statistics(g, views[view], about, T)
                features = statistics[view]
            scaled = g("Div", g("Sub", features, seat["columns.mean"]), seat["columns.scale"])
            found = g.cast(g("Clip", scaled, np.float64(-10), np.float64(10)), _FLOAT)
            answers.append((_of_trees if witness == "trees" else _of_weights)(g, found, seat, K))
        rows.append(found)
    for i, at in enumerate(about["relearned"]):
        answers.append(_gaussian(g, rows[at], without_prefix(f"relearned.{i}", arrays)))
    stacked = g("Concat", *(g("Unsqueeze", answer, [0]) for answer in answers), axis=0)
    return _joined(g, stacked, without_prefix("votes", arrays), about)


def _undo(g: _Graph, x: Value, shift: str, arrays: Arrays, n_channels: int) -> str:
    if shift == "order":
        return g("Gather", g("Mul", x, arrays["signs"][:, None]), np.argsort(arrays["order"]), axis=1)
    if shift == "unit":
        return g.cast(g("Mul", g.cast(x, _DOUBLE), arrays["factors"][:, None]), _FLOAT)
    if shift == "pace":
        return g.cast(g("MatMul", g.cast(x, _DOUBLE), arrays["resample"]), _FLOAT)
    dead, fill = np.zeros((n_channels, 1), bool), np.zeros((n_channels, 1), np.float32)
    dead[arrays["dead"], 0], fill[arrays["dead"], 0] = True, arrays["fill"]
    return g("Where", dead, fill, x)


def _viewed(g: _Graph, x: Value, view: str, arrays: Arrays) -> str:
    wide = g.cast(x, _DOUBLE)
    mean: Value = arrays["mean"][:, None]
    scale: Value = arrays["scale"][:, None]
    if view == "shape":
        mean = g.mean(wide, 2, keep=True)
        apart = g("Sub", wide, mean)
        scale = g("Add", g("Sqrt", g.mean(g("Mul", apart, apart), 2, keep=True)), 1e-2 * arrays["scale"][:, None])
    return g.cast(g("Div", g("Sub", wide, mean), scale), _FLOAT)


def _deviation(g: _Graph, x: Value) -> str:
    """(n, D, T) -> (n, D, 1)."""
    apart = g("Sub", x, g.mean(x, 2, keep=True))
    return g("Sqrt", g.mean(g("Mul", apart, apart), 2, keep=True))


def _statistics(g: _Graph, values: Value, about: dict[str, Any], T: int) -> str:
    settings, D = about["settings"], about["n_channels"]
    x = g.cast(values, _DOUBLE)
    level = g.mean(x, 2, keep=True)
    steps = _deviation(g, g("Sub", g.cut(x, 1, T, 2), g.cut(x, 0, T - 1, 2)))
    centred = g("Sub", x, level)
    quantities = [level, _deviation(g, x), steps, _quantiles(g, x, settings["quantiles"], T)]
    quantities.append(_energies(g, centred, settings["bands"], T))
    by_channel = g("Concat", *quantities, axis=2)  # (n, D, quantities)
    n_quantities = 3 + len(settings["quantiles"]) + settings["bands"]
    blocks = [g("Reshape", g("Transpose", by_channel, perm=[0, 2, 1]), [-1, n_quantities * D])]
    first, second = (pair[: settings["max_pairs"]] for pair in np.triu_indices(D, 1))
    if len(first):
        joined = g("Mul", g("Gather", centred, first, axis=1), g("Gather", centred, second, axis=1))
        blocks.append(g("Div", g.sum(joined, 2), np.float64(T)))
    return g("Concat", *blocks, axis=1)


def _quantiles(g: _Graph, x: Value, quantiles: Any, T: int) -> str:
    """Interpolated as numpy does it, (n, D, quantiles)."""
    in_order, _ = g("TopK", x, [T], n=2, axis=2, largest=0, sorted=1)
    place = (T - 1) * np.array(quantiles)
    below = np.floor(place).astype(np.int64)
    a, b = g("Gather", in_order, below, axis=2), g("Gather", in_order, np.minimum(below + 1, T - 1), axis=2)
    share, gap = place - below, g("Sub", b, a)
    near_a, near_b = g("Add", a, g("Mul", gap, share)), g("Sub", b, g("Mul", gap, 1 - share))
    return g("Where", share < 0.5, near_a, near_b)


def _energies(g: _Graph, centred: Value, n_bands: int, T: int) -> str:
    """Log energy per band of the spectrum, (n, D, bands)."""
    bins = T // 2 + 1
    angle = 2 * np.pi / T * (np.arange(T)[:, None] * np.arange(bins) % T)
    real, imaginary = g("MatMul", centred, np.cos(angle)), g("MatMul", centred, np.sin(angle))
    power = g("Add", g("Mul", real, real), g("Mul", imaginary, imaginary))
    edges = np.round(np.geomspace(1, max(bins, 2), n_bands + 1)).astype(int)
    at = np.arange(bins)[:, None]
    inside = ((at >= edges[:-1]) & (at < edges[1:])).astype(np.float64)
    return g("Log", g("Add", g("MatMul", power, inside), np.float64(1e-6 * T)))


def _patch_codes(g: _Graph, values: Value, seat: Arrays, D: int, T: int) -> str:
    centres = seat["centres"]
    m = centres.shape[1]
    wide = g("Div", g("Sub", g.cast(values, _DOUBLE), seat["mean"][:, None]), seat["deviation"][:, None])
    patches = g("Reshape", g.cut(wide, 0, T // m * m, 2), [-1, D, T // m, m])
    products = g("MatMul", g("Mul", np.float64(2), patches), centres.T)
    return g("ArgMin", g("Sub", (centres**2).sum(axis=1), products), axis=3, keepdims=0)


def _responses(g: _Graph, values: Value, seat: Arrays, D: int, T: int) -> str:
    above, most = [], []
    for d in np.unique(seat["dilations"]).tolist():
        mine = seat["dilations"] == d
        kernels, thresholds = seat["kernels"][mine], seat["thresholds"][mine]
        kernels = kernels.reshape(len(kernels), D, -1)
        pad = d * (kernels.shape[2] // 2)
        r = g("Conv", values, kernels, dilations=[d], pads=[pad, pad], kernel_shape=[kernels.shape[2]])
        passed = g.cast(g("Greater", r, thresholds[:, None]), _FLOAT)
        above.append(g("Div", g.sum(passed, 2), np.float32(T)))
        most.append(g("ReduceMax", r, [2], keepdims=0))
    return g("Concat", *above, *most, axis=1)


def _spread(g: _Graph, p: Value, classes: NDArray, n_classes: int, least: Any) -> str:
    """Probabilities of some classes as those of all, none below `least`."""
    place = np.zeros((len(classes), n_classes))
    place[np.arange(len(classes)), classes] = 1
    absent = np.where(place.any(axis=0), 0, float(least))
    p = g.cast(g("Max", p, least), _DOUBLE)
    return g.normalised(g("Add", g("MatMul", p, place), absent), n_classes)


def _shown_only(g: _Graph, log_p: Value, shown: NDArray) -> str:
    if shown.all() or not shown.any():
        return log_p
    lowest = g("Sub", g("ReduceMin", log_p, [1], keepdims=1), np.float64(1e3))
    return g("Where", shown[None].astype(bool), log_p, lowest)


def _of_codes(g: _Graph, codes: Value, seat: Arrays, n_classes: int, N: int) -> str:
    found = g.sum(_likelihoods(g, codes, seat["log_p"], N), 1)
    p = g.softmax(_shown_only(g, found, seat["shown"]), 1)
    return _spread(g, p, np.arange(n_classes), n_classes, np.float64(1e-6))


def _of_weights(g: _Graph, rows: Value, seat: Arrays, n_classes: int) -> str:
    weights, bias = seat["weights"], seat["bias"]
    x = rows if weights.dtype == np.float32 else g.cast(rows, _DOUBLE)
    p = g.softmax(g("Add", g("MatMul", x, weights.T), bias.astype(weights.dtype)), 1)
    return _spread(g, p, seat["classes"], n_classes, weights.dtype.type(1e-6))


def _of_trees(g: _Graph, rows: Value, seat: Arrays, n_classes: int) -> str:
    """All trees go down one level at a time; a leaf leads to itself."""
    at, leaf = np.arange(len(seat["left"])), seat["left"] < 0
    left, right = (np.where(leaf, at, seat[side]) for side in ("left", "right"))
    feature = np.where(leaf, 0, seat["feature"])
    threshold = seat["threshold"].astype(np.float32)
    too_high = threshold.astype(np.float64) > seat["threshold"]  # rows are float32: rounding down changes no answer
    threshold[too_high] = np.nextafter(threshold[too_high], np.float32(-np.inf))
    nodes = [g.constant(each) for each in (left, right, feature, threshold)]
    n_rows = g("Slice", g("Shape", rows), [0], [1])
    node = g("Expand", seat["roots"][None], g("Concat", n_rows, [len(seat["roots"])], axis=0))
    level = seat["roots"]
    while not leaf[level].all():
        value = g("GatherElements", rows, g("Gather", nodes[2], node), axis=1)
        goes_left = g("LessOrEqual", value, g("Gather", nodes[3], node))
        node = g("Where", goes_left, g("Gather", nodes[0], node), g("Gather", nodes[1], node))
        inner = level[~leaf[level]]
        level = np.concatenate([left[inner], right[inner]])
    shares = g.mean(g.cast(g("Gather", seat["shares"], node), _DOUBLE), 1)
    return _spread(g, shares, seat["classes"], n_classes, np.float64(1e-3))


def _gaussian(g: _Graph, rows: Value, relearned: Arrays) -> str:
    z = g("MatMul", g("Sub", g.cast(rows, _DOUBLE), relearned["mean"]), relearned["axes"])
    apart = g("Sub", g("Unsqueeze", z, [1]), relearned["means"])
    squares = g.sum(g("Mul", g("MatMul", apart, relearned["precision"]), apart), 2)
    p = g.softmax(_shown_only(g, g("Mul", squares, np.float64(-0.5)), relearned["shown"]), 1)
    return g.normalised(g("Max", p, np.float64(1e-6)), len(relearned["means"]))


def _joined(g: _Graph, answers: Value, votes: Arrays, about: dict[str, Any]) -> str:
    if not votes:
        voting = np.array([view == "recorded" for _, view in about["seats"]])
        voting = voting if voting.any() else ~voting
        return g.softmax(g.mean(g("Log", g("Gather", answers, np.flatnonzero(voting), axis=0)), 0), 1)
    (S, K, n_symbols), thresholds = votes["log_confusions"].shape, votes["thresholds"]
    top, _ = g("TopK", answers, [2], n=2, axis=2)
    logs = g("Log", top)
    margins = g("Sub", g.cut(logs, 0, 1, 2), g.cut(logs, 1, 2, 2))  # (S, n, 1)
    certainty = g.sum(g.cast(g("Greater", margins, thresholds[:, None]), _INT), 2)
    named = g("ArgMax", answers, axis=2, keepdims=0)
    symbols = g("Add", named, g("Mul", g("Sub", np.int64(thresholds.shape[1]), certainty), np.int64(K)))
    tables = np.ascontiguousarray(votes["log_confusions"].transpose(0, 2, 1).reshape(-1, K))
    evidence = g("Gather", tables, g("Add", symbols, (np.arange(S) * n_symbols)[:, None]))
    return g.softmax(g("Add", g.sum(evidence, 0), votes["bias"]), 1)


# variant "paper": the network, or the Markov posterior of its codes


def _network(g: _Graph, x: Value, about: dict[str, Any], arrays: Arrays, T: int) -> str:
    settings, net, D = about["settings"], without_prefix("network", arrays), about["n_channels"]
    m, d = settings["patch_length"], len(net["cls"])
    N = T // m
    patches = g("Reshape", g.cut(x, 0, N * m, 2), [-1, N, m])
    embedded = _layer_norm(g, g("Gelu", _linear(g, patches, net, "embed.0")), net, "embed.2")
    start = _positions(N + 1, d)
    start[0] += net["cls"]
    tokens = g("Add", g("Pad", embedded, [0, 1, 0, 0, 0, 0]), start)
    for i in range(settings["n_layers"]):
        layer = without_prefix(f"encoder.layers.{i}", net)
        mixed = _attention(g, tokens, layer, settings["n_heads"], d)
        tokens = _layer_norm(g, g("Add", tokens, mixed), layer, "norm_attention")
        hidden = _linear(g, g("Gelu", _linear(g, tokens, layer, "expand")), layer, "contract")
        tokens = _layer_norm(g, g("Add", tokens, hidden), layer, "norm_feedforward")
    if settings["mode"] == "markov":
        return _posterior(g, g.cut(tokens, 1, N + 1, 1), about, arrays, N)
    z = g.mean(g("Reshape", g.cut(tokens, 0, 1, 1), [-1, D, d]), 1)
    logits = _linear(g, g("Relu", _linear(g, z, net, "head.0")), net, "head.2")
    return g.softmax(g.cast(logits, _DOUBLE), 1)


def _posterior(g: _Graph, latents: Value, about: dict[str, Any], arrays: Arrays, N: int) -> str:
    nearest = g("ArgMax", g("MatMul", latents, arrays["codes"].T), axis=2, keepdims=0)
    codes = g("Reshape", nearest, [-1, about["n_channels"], N])
    divisor = np.float64(max(1, N - about["settings"]["fewer_than_codes"]))
    likelihoods = g("Div", _likelihoods(g, codes, np.maximum(arrays["log_p"], _IMPOSSIBLE), N), divisor)
    scores = g("Add", likelihoods, np.maximum(arrays["log_prior"], _IMPOSSIBLE))
    weighted = g("Mul", g.softmax(scores, 2), arrays["shares"][:, None])
    return g.normalised(g.sum(weighted, 1), len(arrays["log_p"]))


def _linear(g: _Graph, x: Value, net: Arrays, name: str) -> str:
    return g("Add", g("MatMul", x, net[f"{name}.weight"].T), net[f"{name}.bias"])


def _layer_norm(g: _Graph, x: Value, net: Arrays, name: str) -> str:
    return g("LayerNormalization", x, net[f"{name}.weight"], net[f"{name}.bias"], axis=-1, epsilon=1e-5)


def _attention(g: _Graph, x: Value, layer: Arrays, n_heads: int, d: int) -> str:
    heads = g("Reshape", _linear(g, x, layer, "attention.project_in"), [0, 0, 3, n_heads, d // n_heads])
    q, k, v = (g("Gather", heads, np.int64(i), axis=2) for i in range(3))  # each (S, L, heads, d_h)
    q, v = (g("Transpose", each, perm=[0, 2, 1, 3]) for each in (q, v))
    scores = g("MatMul", g("Div", q, np.float32(np.sqrt(d // n_heads))), g("Transpose", k, perm=[0, 2, 3, 1]))
    mixed = g("Transpose", g("MatMul", g.softmax(scores, 3), v), perm=[0, 2, 1, 3])
    return _linear(g, g("Reshape", mixed, [0, 0, d]), layer, "attention.project_out")


def _positions(length: int, width: int) -> NDArray[np.float32]:
    t, i = np.arange(length)[:, None], np.arange(0, width, 2)
    angle = t * np.exp(-np.log(10_000) * i / width)
    return np.stack([np.sin(angle), np.cos(angle)], axis=-1).reshape(length, -1)[:, :width].astype(np.float32)
