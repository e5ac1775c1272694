"""Several cheap witnesses look at an unlabelled target; what a sensor suffered is undone before they are heard."""

from transpl.council.council import Council, Hearing, Standing
from transpl.council.joining import Structure
from transpl.council.parameters import CouncilSettings
from transpl.council.quality import Estimate

__all__ = ["Council", "CouncilSettings", "Estimate", "Hearing", "Standing", "Structure"]
