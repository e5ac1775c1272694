"""The signals of a PTB record: 12 leads in sXXXX.dat, the three of Frank in sXXXX.xyz, read by wfdb.

wfdb does not compare the checksums that a header has of its leads; here they are, so that a damaged file is noticed.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from transpl._utils.errors import unreadable_file
from transpl.datasets.optional import optional_package
from transpl.datasets.recipes.ptb_headers import LEADS, Header

_SUFFIXES = (".dat", ".xyz")
_CHECKSUM = 1 << 16  # it is the sum of a lead's samples, modulo this
_DAMAGE = (ValueError, TypeError, IndexError, KeyError, AttributeError, OverflowError, OSError, MemoryError)  # of wfdb
_ADVICE = "Fetch its .dat and .xyz anew from physionet.org/files/ptbdb/1.0.0."


def missing_file(header: Header) -> Path | None:
    """Return the first file that should be beside the header and is not."""
    paths = [header.path.with_suffix(suffix) for suffix in _SUFFIXES]
    return next((path for path in paths if not path.is_file()), None)


def read_signals(header: Header) -> NDArray[np.float64]:
    """Return the (time, leads) signals in mV; files that are absent, short or altered are refused."""
    wfdb = optional_package("wfdb", "ptb", "reading its records", '"transpl[ecg]"')
    missing = missing_file(header)
    if missing is not None:
        raise unreadable_file(
            missing, problem="no such file", advice=f"It belongs beside {header.path.name}. {_ADVICE}"
        )
    try:
        record = wfdb.rdrecord(str(header.path.with_suffix("")), physical=False)
        intact = (np.subtract(record.calc_checksum(), record.checksum) % _CHECKSUM == 0).all()
        signals = np.asarray(record.dac(), dtype=np.float64)
    except _DAMAGE as error:
        raise unreadable_file(header.path, problem=f"its signals cannot be read ({error})", advice=_ADVICE) from None
    if not intact or signals.shape != (header.samples, len(LEADS)) or not np.isfinite(signals).all():
        raise unreadable_file(header.path, problem="its signals do not have the checksums it gives", advice=_ADVICE)
    return signals
