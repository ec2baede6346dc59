"""Files that are given in place of HDF5: what they are, and how they become it."""

from __future__ import annotations

from pathlib import Path

_HDF5 = b"\x89HDF\r\n\x1a\n"
_COPY = "h5py.File('x.h5', 'w')['x'] = {} makes one of it"
_BEGINNINGS = {
    b"\x93NUMPY": "it is an array of NumPy; " + _COPY.format("numpy.load(name)"),
    b"PK\x03\x04": "it is a zip archive; where it is NumPy's npz, "
    + _COPY.format("numpy.load(name)[array]"),
    b"MATLAB 5.0": "it is a MATLAB file of an old format; MATLAB's save(..., '-v7.3') writes HDF5, "
    "with the axes in reverse",
    b"SIMPLE  =": "it is a FITS file; " + _COPY.format("astropy.io.fits.getdata(name)"),
    b"CDF": "it is a netCDF file of an old format; nccopy -k nc4 makes one of it",
}
_TEXT = "it is text; where it is a table of numbers, " + _COPY.format(
    "numpy.loadtxt(name, delimiter=',')"
)
_LOOKED_AT = 512


def found_instead(path: Path) -> str:
    """Return what a file is that is not HDF5, and how it becomes that; "" where unknown."""
    try:
        with path.open("rb") as file:
            begin = file.read(_LOOKED_AT)
    except OSError:
        return ""
    if not begin:
        return "it is empty"
    if begin.startswith(_HDF5):
        return ""
    for signature, words in _BEGINNINGS.items():
        if begin.startswith(signature):
            return words
    is_text = begin.isascii() and all(chr(c).isprintable() or chr(c) in "\t\r\n" for c in begin)
    return _TEXT if is_text else ""
