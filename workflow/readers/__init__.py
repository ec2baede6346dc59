"""Readers of formats: arrays of a user's file with axes, coordinates and units.

To add one, add a file beside this one with a `Reader`, a row to `READERS` and one to
`workflow.config.formats.FORMATS`.
"""

from __future__ import annotations

from collections.abc import Callable

from workflow.config.file_input import FileInput
from workflow.config.formats import FORMATS
from workflow.readers.base import Reader as Reader
from workflow.readers.channel_state import ChannelState
from workflow.readers.guppi import Guppi
from workflow.readers.scattering import Touchstone
from workflow.readers.sigmf import SigMF
from workflow.readers.visibilities import Uvh5
from workflow.readers.voltages import Dada, Vdif

READERS: dict[str, type[Reader]] = {
    "uvh5": Uvh5, "guppi": Guppi, "dada": Dada, "vdif": Vdif, "sigmf": SigMF,
    "touchstone": Touchstone, "csi": ChannelState,
}  # fmt: skip
"""Readers by the format of an input."""


def reader_of(source: FileInput, operand: str, *, check: bool = False) -> Reader:
    """Return the reader of an operand's file, with what the config says of such files."""
    reader: Callable[..., Reader] = READERS[source.format]
    lacks_rate = FORMATS[source.format].lacks_rate
    found = reader(source.path, source.sample_rate_hz) if lacks_rate else reader(source.path)
    found.flagged, found.checked = source.flagged, check
    found.zero_level = source.zero_level_of(operand)
    return found
