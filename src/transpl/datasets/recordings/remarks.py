"""What is said of a file that was read: what is in it, what became of its rows, what looks like a mistake."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from transpl._utils.wording import counted
from transpl.datasets.recordings.clocks import SAME_RATE, Clock, is_same_rate, split_ratio
from transpl.datasets.recordings.table_rows import Tally
from transpl.datasets.recordings.tables import Text
from transpl.datasets.recordings.window_sizes import Sizes

LOUD = 0.05  # share of rows in no window, above which a person should know


class Account(NamedTuple):
    """What was found in a table, and what became of its rows.

    rows, recordings : how many
    left_out : rows that are in no window
    tally : why
    clocks : of the recordings, if there is a time column
    unused : columns with no role
    notes : what was done to the rows
    """

    rows: int
    recordings: int
    left_out: int
    tally: Tally
    clocks: list[Clock]
    unused: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def share_left_out(self) -> float:
        """Of the rows; those between windows that are further apart than long are left out on purpose."""
        return max(0, self.left_out - self.tally.between) / max(1, self.rows)

    def changes(self) -> list[str]:
        """What was done to the rows, in words."""
        tally, found = self.tally, list(self.notes)
        if tally.uneven:
            found.append(f"uneven clock, so {counted(tally.uneven, 'row')} interpolated at the usual rate")
        if tally.filled:
            found.append(f"{counted(tally.filled, 'missing sample')} filled in")
        if tally.standing and not any(clock.coarse for clock in self.clocks):
            found.append(f"{counted(tally.standing, 'row')} with the time of the row before dropped")
        return found


def describe(account: Account, channels: tuple[str, ...], windows: int, sizes: Sizes, y: Text | None) -> str:
    """Say in a line what was read and what was left out."""
    resampled = "" if sizes.rate is None else f" at {sizes.rate:g} per second"
    left_out = f"; {counted(account.left_out, 'row')} in gaps or tails left out" if account.left_out else ""
    changes = "".join(f"; {line}" for line in account.changes())
    return (
        f"{counted(account.rows, 'row')}, {list_channels(channels)}, {counted(account.recordings, 'group')} -> "
        f"{counted(windows, 'window')} of {sizes.window}, step {sizes.step}{resampled}"
        f"{left_out}{changes}{unlabelled_note(y)}{unused_note('columns', account.unused)}"
    )


def loss_warnings(account: Account) -> list[str]:
    """Return a line if many rows are in no window, with the reasons."""
    if account.share_left_out <= LOUD:
        return []
    tally = account.tally
    reasons = {
        "rows that lack a value": tally.missing - tally.bridged,
        "what is left over before a gap": tally.before_gap,
        "what is left over before a change of label": tally.before_label,
        "what is left over at the end of a recording": tally.at_end,
    }
    named = sorted((reason for reason, n in reasons.items() if n), key=reasons.__getitem__, reverse=True)
    lost, share = counted(account.left_out, "row"), 100 * account.share_left_out
    advice = "A longer --gap bridges more, a shorter --window leaves less over."
    return [f"{lost} of {account.rows:,} ({share:.0f} %) are in no window: {', '.join(named)}. {advice}"]


def rate_warnings(interval: float | None, known: float | None, rate: float | None = None) -> list[str]:
    """Return a line if rows are not as far apart as in training; a factor of 1000^k may be another unit of time."""
    if interval is None or known is None or rate is not None:
        return []
    _, factor = split_ratio(interval, known)
    if is_same_rate(factor):
        return []
    return [
        f"its rows are {factor:.3g} times as far apart in time as the source's ({interval:g} against {known:g} s), "
        f"so that the same motion looks faster or slower. Adapt with --rate {_round(1 / known)} to have both alike."
    ]


def mixed_rate_warnings(steps: Sequence[float], rate: float | None) -> list[str]:
    """Return a line if recordings of one file are sampled at different rates."""
    known = [step for step in steps if step > 0]
    if rate is not None or not known or max(known) <= SAME_RATE * min(known):
        return []
    usual = float(np.median(known))
    return [
        f"its recordings have {_round(1 / max(known))} to {_round(1 / min(known))} rows per second, and windows of "
        f"different duration. With --rate {_round(1 / usual)} they are alike."
    ]


def list_channels(names: tuple[str, ...]) -> str:
    """Return "2 channels (ax, ay)"."""
    return f"{counted(len(names), 'channel')} ({shorten(names)})"


def shorten(names: Sequence[str], most: int = 20) -> str:
    """List names, not more than `most` of them."""
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def unused_note(what: str, names: Sequence[str]) -> str:
    """Return the end of a description, for columns that were not used."""
    return f"; {what} not used: {shorten(names)}" if names else ""


def unlabelled_note(y: Text | None) -> str:
    """Return the end of a description, for windows without label."""
    missing = 0 if y is None else int((y == "").sum())
    return f"; {counted(missing, 'window')} without label" if missing else ""


def _round(rate: float) -> str:
    return f"{rate:.3g}" if rate < 10 else f"{rate:.0f}"
