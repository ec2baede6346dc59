"""Formats of a user's file, by the names that a study gives them."""

from __future__ import annotations

HDF5 = "hdf5"
FORMATS = {
    HDF5: "datasets by their paths",
    "uvh5": "visibilities of an interferometer",
    "guppi": "voltages of a GUPPI file, by the package baseband",
    "dada": "voltages of a DADA file, by the package baseband",
    "vdif": "voltages of a VDIF file, by the package baseband",
    "touchstone": "scattering parameters of a network, by the package scikit-rf",
    "csi": "Wi-Fi channel state of an Intel 5300, as the Linux 802.11n CSI Tool logs it",
}
"""Contents of each format; all but HDF5 have a reader in `workflow.readers`."""
