"""The main job, data in, folder out: for one target and for many, at once or streaming."""

from transpl.jobs.check_order import check_order
from transpl.jobs.folder import load_model, load_sample
from transpl.jobs.job import (
    Job,
    JobOutcome,
    Source,
    check_grouping,
    from_dataset,
    from_recordings,
    hold_out_ends,
    run,
)
from transpl.jobs.many import AdaptedTarget, adapt_many
from transpl.jobs.many_job import ManyJob, run_many, table_as_text
from transpl.jobs.review import least_confident, read_labels, review_job, review_recordings
from transpl.jobs.stream import WindowLabels, label_windows
from transpl.jobs.target import Target, origin_of, predictions_table
from transpl.jobs.target_files import TargetFile, expand_patterns, is_pattern

__all__ = [
    "AdaptedTarget",
    "Job",
    "JobOutcome",
    "ManyJob",
    "Source",
    "Target",
    "TargetFile",
    "WindowLabels",
    "adapt_many",
    "check_grouping",
    "check_order",
    "expand_patterns",
    "from_dataset",
    "from_recordings",
    "hold_out_ends",
    "is_pattern",
    "label_windows",
    "least_confident",
    "load_model",
    "load_sample",
    "origin_of",
    "predictions_table",
    "read_labels",
    "review_job",
    "review_recordings",
    "run",
    "run_many",
    "table_as_text",
]
