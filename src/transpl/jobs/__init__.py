"""The main job, data in, folder out: for one target and for many, in one go or streaming."""

from transpl.jobs.one import (
    Job,
    Outcome,
    Source,
    check_order,
    from_dataset,
    from_recordings,
    hold_out_ends,
    labelled_source,
    load_model,
    record_of_failure,
    remember_reading,
    run,
    wanted_source,
)

__all__ = [
    "Job",
    "Outcome",
    "Source",
    "check_order",
    "from_dataset",
    "from_recordings",
    "hold_out_ends",
    "labelled_source",
    "load_model",
    "record_of_failure",
    "remember_reading",
    "run",
    "wanted_source",
]
