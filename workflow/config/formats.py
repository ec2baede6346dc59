"""Formats of a user's file, by the names that a study gives them."""

from __future__ import annotations

from dataclasses import dataclass

HDF5 = "hdf5"


@dataclass(frozen=True)
class Format:
    """A format, and what advice about its files needs.

    ``objects`` are the names of which each HDF5 file of the format has all, and ``covariance`` is
    its array of covariances of antennas; there may be neither. ``lacks_rate`` says that a file may
    not tell its sample rate, ``lacks_zero`` that it does not tell whether its numbers are unsigned,
    ``flagged`` are the choices for values that it flags or lacks, ``has_sequences`` says that a
    recording may be several files, ``beside`` are the suffixes of the files that it is made of, of
    which a study names one, and ``suffix`` is a regular expression of the suffix of its name.
    """

    contents: str
    objects: tuple[str, ...] = ()
    covariance: str | None = None
    lacks_rate: bool = False
    lacks_zero: bool = False
    flagged: tuple[str, ...] = ()
    has_sequences: bool = False
    beside: tuple[str, ...] = ()
    suffix: str = ""


FORMATS = {
    HDF5: Format("datasets by their paths"),
    "uvh5": Format(
        "visibilities of an interferometer",
        ("Header", "Data"),
        "covariance",
        flagged=("refuse", "zero", "keep"),
    ),
    "guppi": Format(
        "voltages of a GUPPI recording",
        lacks_zero=True,
        flagged=("refuse", "zero"),
        has_sequences=True,
        suffix=r"\.raw",
    ),
    "dada": Format(
        "voltages of a DADA file, by the package baseband", lacks_zero=True, suffix=r"\.dada"
    ),
    "vdif": Format(
        "voltages of a VDIF file, by the package baseband", lacks_rate=True, suffix=r"\.vdif"
    ),
    "sigmf": Format(
        "samples of a SigMF recording",
        lacks_zero=True,
        beside=(".sigmf-meta", ".sigmf-data"),
        suffix=r"\.sigmf-(meta|data)",
    ),
    "touchstone": Format(
        "scattering parameters of a network, by the package scikit-rf", suffix=r"\.s[1-9]\d*p"
    ),
    "csi": Format("Wi-Fi channel state of an Intel 5300, as the Linux 802.11n CSI Tool logs it"),
}
"""All but HDF5 have a reader in `workflow.readers`."""
