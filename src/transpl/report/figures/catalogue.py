"""The figures by name: what each is made of, and which options it takes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from transpl.report.studies.channel_corruption import corruption_study
from transpl.report.studies.channel_shift import alignment_study
from transpl.report.studies.code_entropy import entropy_study
from transpl.report.studies.decoded_codes import codes_study
from transpl.report.studies.subject import Subject
from transpl.report.studies.window_likelihoods import likelihood_study


class Figure(NamedTuple):
    """A study of subjects: of all that are chosen (`several`), or of one; `one_dataset` where they must be alike."""

    study: Callable[..., dict[str, Any]]
    options: tuple[str, ...] = ()
    several: bool = False
    one_dataset: bool = True


def _of_one(study: Callable[..., dict[str, Any]]) -> Callable[..., dict[str, Any]]:
    def of_first(subjects: Sequence[Subject], **options: Any) -> dict[str, Any]:
        return study(subjects[0], **options)

    return of_first


FIGURES: dict[str, Figure] = {
    "entropy": Figure(entropy_study, ("order", "delay", "context"), several=True, one_dataset=False),
    "codes": Figure(_of_one(codes_study), ("context",)),
    "likelihoods": Figure(_of_one(likelihood_study), ("window", "channel")),
    "alignment": Figure(_of_one(alignment_study)),
    "corruption": Figure(corruption_study, ("channel", "noise", "noise_seeds"), several=True),
}
