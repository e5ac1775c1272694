import numpy as np
import pytest

from transpl.datasets.recordings.doubts import other_rate, suspected_times


@pytest.mark.parametrize("factor", [1, 1.05, 0.95, 1000, 1e6, 1e-3, 1.05e-9])
def test_the_same_rate_in_any_unit_of_time_is_no_doubt(factor):
    assert other_rate(0.02 * factor, 0.02) == []


@pytest.mark.parametrize(("factor", "said"), [(2, "2"), (0.5, "0.5"), (1.2, "1.2"), (2000, "2"), (5e-4, "0.5")])
def test_another_rate_is_told_whatever_the_unit(factor, said):
    (line,) = other_rate(0.02 * factor, 0.02)
    assert line.startswith(f"its rows are {said} times as far apart in time as the source's")


def test_without_times_nothing_is_known():
    assert other_rate(None, 0.02) == other_rate(0.02, None) == []


def test_a_channel_that_only_grows_may_be_the_time():
    still, grows = np.array([0.0, 1.0, 1.0]), np.array([0.0, 0.5, 2.0])
    (line,) = suspected_times(np.column_stack([still, grows]), ("x", "t"))
    assert line.startswith("'t' is taken as a channel")


def test_two_rows_tell_nothing():
    assert suspected_times(np.array([[0.0], [1.0]]), ("t",)) == []
