"""The parameters of `TransPL`: their help texts, which variant uses them, and the modes of each variant.

Most parameters are settings of the method behind a variant. Their defaults and help texts are declared there, and only
read here. Nothing in this module needs scikit-learn or torch.
"""

from __future__ import annotations

import inspect
import textwrap
from typing import TypeVar

from transpl._utils.errors import check_choice, invalid
from transpl.methods.council_settings import CouncilMethodSettings
from transpl.methods.method_settings import settings_table
from transpl.methods.transpl.paper_settings import TransPLSettings

MODES = {"plus": ("markov",), "paper": ("finetune", "markov")}  # by variant, its default first
VARIANTS = tuple(MODES)

# Parameters that change no number of a fitted model: how it runs, and the names of channels in tables and sentences.
EFFECTIVE_AT_ONCE = ("device", "devices", "n_threads", "checkpoint_dir", "verbose", "channel_names")

# Of these, the ones that belong to a machine. They are not saved, and never read from a file.
OF_THE_MACHINE = ("device", "devices", "n_threads", "checkpoint_dir", "verbose")

_OF_PLUS = {each.name: each for each in settings_table(CouncilMethodSettings)}
_OF_PAPER = {each.name: each for each in settings_table(TransPLSettings)}
_OF_BOTH = ("patch_length", "n_coarse", "sigma", "channel_alignment", "smoothing", "epsilon")
_OWN = {
    "variant": '"plus", or "paper", which needs `pip install "transpl[deep]"`',
    "random_state": "seed of everything random; the same seed on the same machine gives the same numbers",
    "n_threads": "CPU threads; None keeps the libraries' setting. Another number of threads rounds differently",
    "n_coarse": (
        'codes in the codebook that shows what shifted; with variant="paper" in the coarse codebook, which labels'
    ),
    "smoothing": (
        'how unseen transitions are counted: "floor" (the authors\' code), "additive" (the paper\'s text) or '
        '"pseudocount"; None is "floor" with variant="paper" and "pseudocount" with variant="plus"'
    ),
    "witnesses": f"{_OF_PLUS['witnesses'].help}. None is {_OF_PLUS['witnesses'].default}",
    "views": f"{_OF_PLUS['views'].help}. None is {_OF_PLUS['views'].default}",
    "device": '"auto" (CUDA if there is any), "cpu", "cuda" or "cuda:1"',
    "devices": "number of devices that train data-parallel",
    "checkpoint_dir": "folder from which an interrupted `fit` or `adapt` resumes; None keeps no checkpoints",
    "verbose": "show progress on stderr",
}
_ONLY_PAPER = (*(_OF_PAPER.keys() - _OWN.keys() - set(_OF_BOTH)), "device", "devices", "checkpoint_dir", "verbose")
_ONLY_PLUS = ("witnesses", "views", "undo", "triads")

_Class = TypeVar("_Class", bound=type)


def help_of(name: str) -> str:
    """The help text of a parameter of `TransPL`.

    >>> help_of("sigma")
    'bandwidth of the channel weight exp(-distance^2 / sigma^2)'
    """
    if name in _OWN:
        return _OWN[name]
    known = _OF_PAPER | _OF_PLUS
    check_choice("parameter", name, tuple(sorted({*_OWN, *known})))
    return known[name].help


def document_parameters(estimator: _Class) -> _Class:
    """Class decorator: put the parameters with their types, defaults and help texts into the docstring."""
    lines = []
    for name, parameter in inspect.signature(estimator).parameters.items():
        only = "paper" if name in _ONLY_PAPER else "plus" if name in _ONLY_PLUS else None
        text = help_of(name) + (f' (only variant="{only}")' if only else "")
        lines.append(f"{name} : {parameter.annotation}, default={parameter.default!r}")
        lines += textwrap.wrap(f"{text[0].upper()}{text[1:]}.", 112, initial_indent="    ", subsequent_indent="    ")
    if estimator.__doc__ is not None:  # it is with python -OO
        estimator.__doc__ = estimator.__doc__.replace("    {parameters}", textwrap.indent("\n".join(lines), "    "))
    return estimator


def default_mode(variant: str) -> str:
    """The mode of `adapt` when none is given."""
    check_choice("variant", variant, VARIANTS)
    return MODES[variant][0]


def check_mode(variant: str, mode: str | None) -> None:
    """Raise unless the variant can adapt in this mode; None is its default."""
    check_choice("variant", variant, VARIANTS)
    if mode is None:
        return
    check_choice("mode", mode, MODES["paper"])
    if mode not in MODES[variant]:
        expected, advice = f"{MODES[variant][0]!r} with variant={variant!r}", "Leave it out, or use variant='paper'."
        raise invalid("mode", expected=expected, got=repr(mode), advice=advice)
