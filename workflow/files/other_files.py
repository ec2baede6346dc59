"""Advice for files that are not HDF5, or are read as another format or layout than their own."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

import h5py

from workflow.config.formats import FORMATS, HDF5

_HDF5 = b"\x89HDF\r\n\x1a\n"
_COPY = "h5py.File('x.h5', 'w')['x'] = {} makes one of it"
_BEGINNINGS = {
    b"\x93NUMPY": "it is an array of NumPy; " + _COPY.format("numpy.load(name)"),
    b"PK\x03\x04": "it is a zip archive; where it is NumPy's npz, "
    + _COPY.format("numpy.load(name)[array]"),
    b"MATLAB 5.0": "it is a MATLAB file of an old format; MATLAB's save(..., '-v7.3') writes HDF5, "
    "with the axes in reverse",
    b"SIMPLE  =": "it is a FITS file; " + _COPY.format("astropy.io.fits.getdata(name)"),
    **dict.fromkeys(
        (b"RIFF", b"RF64"),
        "it is a WAV file; "
        + _COPY.format("scipy.io.wavfile.read(name)[1]")
        + ", with I and Q along the axis `complex`",
    ),
    **{
        begin: f"it is compressed; {command} -dk writes the file that it holds"
        for command, begin in (
            ("gzip", b"\x1f\x8b"),
            ("bzip2", b"BZh"),
            ("xz", b"\xfd7zXZ"),
            ("zstd", b"\x28\xb5/\xfd"),
        )
    },
    b"CDF": "it is a netCDF file of an old format; nccopy -k nc4 makes one of it",
}
_TEXT = "it is text; where it is a table of numbers, " + _COPY.format(
    "numpy.loadtxt(name, delimiter=',')"
)
_NUMBERS = (
    "it does not begin as HDF5 does; where it is numbers alone, "
    + _COPY.format("numpy.fromfile(name, type)")
    + ", or `format: sigmf` with a .sigmf-meta beside it"
)
_RANDOM_GROUPS = re.compile(rb"SIMPLE  = .* NAXIS1  = +0 ")
"""The beginning of FITS with a table in the place of an image, as for visibilities."""
_UVFITS = (
    "it is UVFITS; pyuvdata.UVData.from_file(name).write_uvh5('x.uvh5') makes a file of it that "
    "`format: uvh5` reads"
)
_BEGINNING_BYTES = 512
_CUT = re.compile(r"truncated file: eof = (\d+), .*stored_eof = (\d+)")
"""The message of HDF5 about a file that ends before its header says so."""


def found_instead(path: Path) -> str:
    """Return what a file is that is not HDF5, and how to convert it; "" where it begins as HDF5."""
    try:
        with path.open("rb") as file:
            begin = file.read(_BEGINNING_BYTES)
    except OSError:
        return ""
    if not begin:
        return "it is empty"
    if begin.startswith(_HDF5):
        return ""
    if _RANDOM_GROUPS.match(begin):
        return _UVFITS
    for signature, words in _BEGINNINGS.items():
        if begin.startswith(signature):
            return words
    for name, one in FORMATS.items():
        if one.suffix and re.fullmatch(one.suffix, path.suffix.lower()):
            return f"by its name it is {name}: `format: {name}` reads {one.contents}"
    is_text = begin.isascii() and all(chr(c).isprintable() or chr(c) in "\t\r\n" for c in begin)
    return _TEXT if is_text else _NUMBERS


def half_written(error: str) -> str:
    """Return why a file is not whole, by an error of HDF5; "" for errors about something else.

    It was cut, or a program that writes it for readers meanwhile (SWMR) has not closed it.
    """
    if "file is already open for write" in error:
        return (
            "another program is writing it, or was ended while it did; after that h5clear -s makes "
            "it readable"
        )
    found = _CUT.search(error)
    if not found:
        return ""
    there, whole = found.groups()
    return f"it is cut short: {there} of its {whole} bytes are there; copy or write it again"


def better_format(file: h5py.File, given: str) -> str:
    """Return which format reads a file that was given as HDF5; "" where it is that.

    It looks at names alone and follows no link.
    """
    if given != HDF5:
        return ""
    names = file.keys()
    for name, found in FORMATS.items():
        if found.objects and all(one in names for one in found.objects):
            return f"; it looks like {name}: `format: {name}` reads {found.contents}"
    return ""


def by_matlab(datasets: Iterable[h5py.Dataset]) -> bool:
    """Return whether MATLAB wrote one of the datasets, whose axes then are in reverse."""
    return any("MATLAB_class" in dataset.attrs for dataset in datasets)
