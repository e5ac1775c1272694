"""What a sensor may have suffered, in words a person understands, and how it is found and undone without labels."""

from transpl.council.shifts.search import Candidate, ShiftSearch, find_shift
from transpl.council.shifts.shift import KINDS, Shift
from transpl.council.shifts.triads import TURNS, find_triads

__all__ = ["KINDS", "TURNS", "Candidate", "Shift", "ShiftSearch", "find_shift", "find_triads"]
