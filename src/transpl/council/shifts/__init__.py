"""Sensor shifts: found without labels, described in plain words, and undone."""

from transpl.council.settings import KINDS
from transpl.council.shifts.search import Candidate, ShiftSearch, find_shift
from transpl.council.shifts.shift import TURNS, Shift, find_triads, is_rotation_rate

__all__ = ["KINDS", "TURNS", "Candidate", "Shift", "ShiftSearch", "find_shift", "find_triads", "is_rotation_rate"]
