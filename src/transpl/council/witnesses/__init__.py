"""The witnesses, one file each, and the contract that they follow."""

from transpl.council.witnesses.witness import ViewedWindows, Witness, find, names, register

__all__ = ["ViewedWindows", "Witness", "find", "names", "register"]
