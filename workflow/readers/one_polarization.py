"""GUPPI files of one polarization whose header says NPOL 1.

NPOL counts the real numbers of a complex sample's polarizations: 4 are two polarizations, 2 one.
Some recorders write 1 for one, which baseband takes for half of one. Of complex samples it can mean
nothing else, so its classes are told so here.
"""

from __future__ import annotations

import importlib
from typing import Any, BinaryIO


def open_single(raw: BinaryIO) -> Any:
    """Return baseband's stream of a GUPPI file's samples, (time, 1, channel)."""
    base: Any = importlib.import_module("baseband.guppi.base")

    class Header(base.GUPPIHeader):  # type: ignore[misc]
        npol = property(lambda self: 1)
        _bpcs = property(lambda self: 2 * int(self["OBSNCHAN"]) * self.bps)

    class Frame(base.GUPPIFrame):  # type: ignore[misc]
        _header_class = Header

    class File(base.GUPPIFileReader):  # type: ignore[misc]
        def read_header(self) -> Any:
            return Header.fromfile(self.fh_raw)

        def read_frame(self, memmap: bool = True, verify: bool = True) -> Any:
            return Frame.fromfile(self.fh_raw, memmap=memmap, verify=verify)

    class Stream(base.GUPPIStreamReader):  # type: ignore[misc]
        def __init__(self, raw: Any) -> None:
            # Past the class's own, which takes the file's classes for baseband's.
            file = File(raw)
            super(base.GUPPIStreamReader, self).__init__(file, file.read_header(), squeeze=False)

    return Stream(raw)
