"""The few windows worth labelling: a csv of them for a person, and that csv read back."""

from transpl.review.choosing import least_confident
from transpl.review.reading import read_labels
from transpl.review.table import review_job, review_recordings

__all__ = ["least_confident", "read_labels", "review_job", "review_recordings"]
