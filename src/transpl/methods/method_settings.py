"""Settings of methods: frozen dataclasses that build on one another, each setting declared once with its help text.

`SourceSettings` describe the source model and nothing else: methods whose source settings are equal share one. The
estimator's parameters, `transpl methods`, the command line and the documentation take defaults and help from here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, asdict, dataclass, field, fields
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

from transpl._utils.errors import check_choice, check_int, check_positive, invalid

if TYPE_CHECKING:
    from transpl.nn import BackboneSettings, LoopSettings, NetworkSettings

Preset = Mapping[str, Mapping[str, Any]]  # data set -> the values that differ from the defaults

# The paper's appendix; one table for all methods, each takes the entries it has a field for.
PAPER: Preset = {
    "ucihar": {},
    "wisdm": {
        "width": 128,
        "sigma": 0.1,
        "prior_temperature": 2.0,
        "top_ratio": 0.2,
        "source_lr": 2e-4,
        "adapt_lr": 5e-4,
    },
    "hhar": {
        "width": 128,
        "sigma": 0.1,
        "prior_temperature": 5.0,
        "top_ratio": 0.2,
        "source_lr": 2e-4,
        "adapt_lr": 2e-4,
    },
    "ptb": {"width": 128, "patch_length": 15, "sigma": 0.2, "prior_temperature": 1.0, "top_ratio": 0.7},
}

BACKBONES = ("patch-transformer", "cnn")
# How the field trains its CNN: a fixed number of epochs, the last one answers.
CNN_TRAINING: Mapping[str, Any] = MappingProxyType(
    {
        "backbone": "cnn",
        "width": 128,
        "dropout": 0.5,
        "source_lr": 1e-3,
        "adapt_lr": 1e-3,
        "warmup_steps": 0,
        "weight_decay": 1e-4,
        "batch_size": 32,
        "max_epochs": 40,
        "keep": "last",
    }
)


def setting(default: Any, help: str) -> Any:
    """A field of a settings dataclass with its help text."""
    return field(default=default, metadata={"help": help})


class Setting(NamedTuple):
    """One field of a settings dataclass."""

    name: str
    default: Any
    help: str


def settings_table(settings: type) -> list[Setting]:
    """The fields of a settings dataclass, in order.

    A field that a subclass declares again without a help text keeps the text of the class above.
    """
    helps: dict[str, str] = {}
    for ancestor in reversed(settings.__mro__):
        own = getattr(ancestor, "__dataclass_fields__", {}).values()
        helps |= {each.name: each.metadata["help"] for each in own if "help" in each.metadata}
    return [
        Setting(
            each.name,
            each.default if each.default_factory is MISSING else each.default_factory(),
            helps.get(each.name, ""),
        )
        for each in fields(settings)
    ]


def recorded(settings: MethodSettings) -> dict[str, Any]:
    """The values that name a run: all settings, and those of older versions that have one value left.

    Settings in `recorded_if_changed` name it only with another value than their default.
    """
    usual = {each.name: each.default for each in fields(settings) if each.name in settings.recorded_if_changed}
    values = {**settings.retired, **asdict(settings)}
    return {name: value for name, value in values.items() if name not in usual or not _is_same(value, usual[name])}


def _is_same(value: Any, other: Any) -> bool:
    return type(value) is type(other) and value == other  # 1 and 1.0 may mean different things


@dataclass(frozen=True)
class MethodSettings:
    """What every method has."""

    presets: ClassVar[Mapping[str, Preset]] = {}
    # What the method has to know of a data set, such as the names of its channels; the same in every preset.
    known_data: ClassVar[Preset] = {}
    # Settings that older versions had, with the only value that is left: by them finished runs keep their names.
    retired: ClassVar[Mapping[str, Any]] = {}
    # Settings whose default belongs to a library, or that were added later: they name a run only if they are changed.
    recorded_if_changed: ClassVar[frozenset[str]] = frozenset()

    random_state: int = setting(0, "seed of everything random")

    def __post_init__(self) -> None:
        check_int("random_state", self.random_state, least=0)

    @property
    def shortest_window(self) -> int:
        """The fewest time steps that a window must have."""
        return 2

    @classmethod
    def for_dataset(cls, dataset: str, preset: str = "paper", **changes: Any) -> Self:
        """Settings for a data set: the paper's values, under those of the method's own preset and your `changes`.

        preset : one of `cls.preset_names()`, such as "adatime"
        An unknown data set (your own) gets the defaults.
        """
        check_choice("preset", preset, cls.preset_names())
        own = {field.name for field in fields(cls)}
        unknown = sorted(set(changes) - own)
        if unknown:
            raise invalid(
                "settings", expected=f"names among {', '.join(sorted(own))}", got=unknown, advice="Check the spelling."
            )
        chosen = {**PAPER.get(dataset, {}), **cls.known_data.get(dataset, {}), **cls.preset(preset, dataset)}
        return cls(**{**{name: value for name, value in chosen.items() if name in own}, **changes})

    @classmethod
    def preset_names(cls) -> tuple[str, ...]:
        """The presets that the method has."""
        return ("paper", *cls.presets)

    @classmethod
    def preset(cls, name: str, dataset: str) -> Mapping[str, Any]:
        """What a preset changes of the paper's values for a data set."""
        return cls.presets.get(name, {}).get(dataset, {})

    def source(self) -> SourceSettings:
        """The settings of the source model that the method starts from; a method without one never trains it."""
        return SourceSettings(random_state=self.random_state)


@dataclass(frozen=True)
class SourceSettings(MethodSettings):
    """The network and the source phase; the paper's values for UCIHAR by default."""

    backbone: str = setting(
        "patch-transformer",
        '"patch-transformer" (the paper\'s) or "cnn", three convolution blocks with batch normalisation; the preset '
        '"cnn" also sets how the field trains it',
    )
    patch_length: int = setting(8, "time steps per code")
    width: int = setting(64, "size d of a latent vector and of the features")
    n_coarse: int = setting(8, "codes in the coarse codebook")
    n_fine: int = setting(64, "codes in the fine codebook; 0 is a single codebook")
    n_layers: int = setting(2, "layers of the encoder")
    n_heads: int = setting(8, "attention heads of a layer")
    dropout: float = setting(0.3, "share of activations that training drops")
    commitment: float = setting(0.25, "weight of the pull of latent vectors towards their codes")
    residual: str = setting(
        "normalised",
        'what the fine codebook sees, "normalised" (the paper\'s print) or "raw" (its authors\' code)',
    )
    cls_trainable: bool = setting(
        False,
        "learn the vector in front of every channel's patches; without, it stays as drawn (authors' code)",
    )
    source_lr: float = setting(5e-4, "learning rate of the source phase")
    weight_decay: float = setting(0.01, "AdamW's, in every phase")
    batch_size: int = setting(32, "rows per step, in every phase")
    max_epochs: int = setting(200, "at most so many epochs per phase")
    check_every: int = setting(2, "epochs between two looks at the validation loss")
    source_patience: int = setting(2, "looks without gain after which the source phase stops")
    keep: str = setting(
        "best",
        'the weights that training returns: the "best" on validation, with early stopping, or the "last"',
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("backbone", self.backbone, BACKBONES)
        check_positive("source_lr", self.source_lr)
        check_int("source_patience", self.source_patience, least=1)
        # Building the parts checks the rest.
        self.network(n_classes=2)
        self.backbone_shape(n_classes=2, n_channels=1)
        self.source_loop()

    @classmethod
    def preset_names(cls) -> tuple[str, ...]:
        own = {field.name for field in fields(cls)}
        return (*super().preset_names(), *(["cnn"] if "backbone" in own else []))

    @classmethod
    def preset(cls, name: str, dataset: str) -> Mapping[str, Any]:
        """As for every method; "cnn" is the field's CNN and its training, with AdaTime's weights where it has them."""
        if name != "cnn":
            return super().preset(name, dataset)
        return {**CNN_TRAINING, **super().preset("adatime", dataset)}

    @property
    def shortest_window(self) -> int:
        """Two patches, which make one transition; two time steps for a CNN."""
        return 2 * self.patch_length if self.backbone == "patch-transformer" else super().shortest_window

    def source(self) -> SourceSettings:
        """The part that a source model depends on."""
        return SourceSettings(**{field.name: getattr(self, field.name) for field in fields(SourceSettings)})

    def backbone_shape(self, n_classes: int, n_channels: int) -> BackboneSettings:
        """The shape of the backbone that the settings name."""
        if self.backbone == "patch-transformer":
            return self.network(n_classes)
        from transpl.nn import CNNSettings

        return CNNSettings(n_classes, n_channels, self.width, self.dropout)

    def network(self, n_classes: int) -> NetworkSettings:
        """The shape of the paper's network: the settings it shares with this class."""
        from transpl.nn import NetworkSettings  # with torch, which tables of finished runs do without

        shared = {field.name for field in fields(NetworkSettings)} & {field.name for field in fields(self)}
        return NetworkSettings(n_classes=n_classes, **{name: getattr(self, name) for name in shared})

    def source_loop(self) -> LoopSettings:
        return self.loop(self.source_lr, self.source_patience)

    def loop(self, learning_rate: float, patience: int, **others: Any) -> LoopSettings:
        """A training of at most `max_epochs`; `others` are further fields of `LoopSettings`."""
        from transpl.nn import LoopSettings

        values = {
            "weight_decay": self.weight_decay,
            "batch_size": self.batch_size,
            "max_epochs": self.max_epochs,
            "check_every": self.check_every,
            "keep": self.keep,
            **others,
        }
        return LoopSettings(learning_rate=learning_rate, patience=patience, **values)


@dataclass(frozen=True)
class AdaptSettings(SourceSettings):
    """The source phase, and a second phase that sees the target."""

    adapt_lr: float = setting(5e-4, "learning rate of the phase that sees the target")
    adapt_patience: int = setting(5, "looks at the validation loss without gain after which it stops")
    warmup_steps: int = setting(50, "steps over which its learning rate grows from 0")

    def __post_init__(self) -> None:
        super().__post_init__()
        check_positive("adapt_lr", self.adapt_lr)
        check_int("adapt_patience", self.adapt_patience, least=1)
        self.adapt_loop()

    def adapt_loop(self) -> LoopSettings:
        return self.loop(self.adapt_lr, self.adapt_patience, warmup_steps=self.warmup_steps)
