"""Curves of errors over the signal-to-noise ratio, which stand beside a product of symbols."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from workflow.data import Coordinate
from workflow.error_counts import EVM, RATE, rates_of

if TYPE_CHECKING:
    from workflow.records import Record


def curves_of(records: Sequence[Record]) -> dict[str, Coordinate]:
    """Return bit error rate and EVM along the signal-to-noise ratios, at each precision of ours.

    There is no EVM where symbols have no value, or no error.
    """
    found = {}
    for record in records:
        counts, powers = (record.measures.get(name) for name in ("bit_errors", "error_power"))
        if not (record.is_ours and record.verified and isinstance(counts, str)):
            continue
        name = f"bit error rate at {record.precision}"
        found[RATE + record.precision] = Coordinate(rates_of(counts)[1], "", name, ("snr",))
        off = rates_of(str(powers or ""))[1]
        if off.size and np.all(np.isfinite(off) & (off > 0)):
            name = f"error vector magnitude at {record.precision}"
            found[EVM + record.precision] = Coordinate(10 * np.log10(off), "dB", name, ("snr",))
    return found
