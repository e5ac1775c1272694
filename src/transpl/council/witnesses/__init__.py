"""The witnesses, one file each."""

from transpl.council.witnesses.base import Sight, Witness, find, names, register

__all__ = ["Sight", "Witness", "find", "names", "register"]
