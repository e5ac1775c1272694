"""The few windows worth labelling: a csv of them for a person, and that csv read back."""

from transpl.jobs.review.choosing import least_confident
from transpl.jobs.review.reading import read_labels
from transpl.jobs.review.table import review_job, review_recordings

__all__ = ["least_confident", "read_labels", "review_job", "review_recordings"]
