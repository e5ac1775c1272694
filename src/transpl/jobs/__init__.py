"""The main job, data in, folder out: for one target and for many, at once or streaming."""

from __future__ import annotations

from typing import TYPE_CHECKING

from transpl._utils.lazy import lazy_names

if TYPE_CHECKING:
    from transpl.jobs.file_check import check_files
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
    from transpl.jobs.many import adapt_many
    from transpl.jobs.many_job import ManyJob, run_many, table_as_text
    from transpl.jobs.many_worker import AdaptedTarget
    from transpl.jobs.review import least_confident, read_labels, review_job, review_recordings
    from transpl.jobs.review_order import check_order
    from transpl.jobs.segments import segments_of
    from transpl.jobs.stream import WindowLabels, label_windows
    from transpl.jobs.target import Target, origin_of, predictions_table
    from transpl.jobs.target_files import TargetFile, saved_reading

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
    "check_files",
    "check_grouping",
    "check_order",
    "from_dataset",
    "from_recordings",
    "hold_out_ends",
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
    "saved_reading",
    "segments_of",
    "table_as_text",
]

# Labelling a file must not wait for what only jobs need.
__getattr__ = lazy_names(
    __name__,
    {
        "file_check": ("check_files",),
        "folder": ("load_model", "load_sample"),
        "job": (
            "Job",
            "JobOutcome",
            "Source",
            "check_grouping",
            "from_dataset",
            "from_recordings",
            "hold_out_ends",
            "run",
        ),
        "many": ("adapt_many",),
        "many_job": ("ManyJob", "run_many", "table_as_text"),
        "many_worker": ("AdaptedTarget",),
        "review": ("least_confident", "read_labels", "review_job", "review_recordings"),
        "review_order": ("check_order",),
        "segments": ("segments_of",),
        "stream": ("WindowLabels", "label_windows"),
        "target": ("Target", "origin_of", "predictions_table"),
        "target_files": ("TargetFile", "saved_reading"),
    },
)
