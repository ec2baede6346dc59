"""Formats of a user's file, by the names that a study gives them."""

from __future__ import annotations

from dataclasses import dataclass

HDF5 = "hdf5"
_BASEBAND = "the package baseband, under the GPL and so not among the locked ones"


@dataclass(frozen=True)
class Format:
    """A format, what advice about its files needs, and its row of config/README.md.

    Attributes:
        contents: what a file holds, in few words.
        arrays: the arrays by which operands name its data, with their axes.
        needs: a package that is not locked.
        objects: names that each HDF5 file of the format has, all of them.
        covariance: its array of covariances of antennas; None where it has none.
        lacks_rate: whether a file may not tell its sample rate.
        lacks_zero: whether it does not tell if its numbers are unsigned.
        flagged: the choices for values that it flags or lacks.
        has_sequences: whether a recording may be several files.
        beside: suffixes of the files that make it up; a study names one of them.
        suffix: a regular expression of the suffix of its name.
    """

    contents: str
    arrays: str
    needs: str = "nothing"
    objects: tuple[str, ...] = ()
    covariance: str | None = None
    lacks_rate: bool = False
    lacks_zero: bool = False
    flagged: tuple[str, ...] = ()
    has_sequences: bool = False
    beside: tuple[str, ...] = ()
    suffix: str = ""


FORMATS = {
    HDF5: Format("datasets by their paths", "datasets by their paths", flagged=("refuse", "zero")),
    "uvh5": Format(
        "visibilities of an interferometer",
        "`visibilities` (time, baseline, frequency, polarization), or the first two turned, as "
        "they lie in the file, conj(x_1) x_2; with `antenna_1` and `antenna_2` along baselines. "
        "`covariance` (time, frequency, polarization, antenna, column), x of the antenna and "
        "conj(x) of the column, where every pair of antennas is there; with `east`, `north` and "
        "`up` of the antennas in m. The phase toward a source is undone in it, as by pyuvdata's "
        "`unproject_phase`. Flagged values that are not zero, and a covariance that lacks pairs, "
        "need `flagged`",
        objects=("Header", "Data"),
        covariance="covariance",
        flagged=("refuse", "zero", "keep"),
    ),
    "guppi": Format(
        "voltages of a GUPPI recording",
        "`voltages` (time, polarization, frequency) of a GUPPI recording of 8 or 16 bits, of "
        "several antennas (`NANTS`) as (time, antenna, polarization, frequency); with the "
        "names of `ANTNMS00` and further, the feeds of `FD_POLN`, the centres of channels, which "
        "fall where `OBSBW` is below 0, as do frequencies within each, and the date of the first "
        "sample by `STT_*` or `SYNCTIME` and `PKTIDX`. An `NPOL` of 4 is two "
        "polarizations, 1 is one, and 2 is one of complex samples as baseband has it, but two of "
        "recorders that write `PIPERBLK`, `NANTS` or `DIRECTIO`. One channel is complex where "
        "`TBIN` is 1 / `OBSBW`. The stage step and certificates say how many packets were dropped "
        "(`DROPBLK`, `NDROP`). A pattern names a recording of several files (below)",
        lacks_zero=True,
        flagged=("refuse", "zero"),
        has_sequences=True,
        suffix=r"\.raw",
    ),
    "dada": Format(
        "voltages of a DADA file, by the package baseband",
        "`voltages` (time, polarization, frequency), as the file has them, of `ORDER` TFP in this "
        "order too; with the centres of channels, which fall where the header's bandwidth is "
        "below 0, as do frequencies within each. Samples of one antenna and beam, of 8 bits",
        needs=_BASEBAND,
        lacks_zero=True,
        suffix=r"\.dada",
    ),
    "vdif": Format(
        "voltages of a VDIF file, by the package baseband",
        "`voltages` (time, thread, frequency), as the file has them, `thread_id` beside them "
        "where that is not 0, 1, ...; `axes` says what threads are, such as polarizations. "
        "`sample_rate_hz` is for a file that does not tell its own. Samples "
        "of frames that are invalid or missing need `flagged: zero`",
        needs=_BASEBAND,
        lacks_rate=True,
        flagged=("refuse", "zero"),
        suffix=r"\.vdif",
    ),
    "sigmf": Format(
        "samples of a SigMF recording",
        "`samples` (time, receiver), or (time) of one channel, of a SigMF recording, named by its "
        ".sigmf-meta or its .sigmf-data: numbers as they are stored, unsigned ones less half of "
        "their range or `zero_level`. `core:frequency` is that of complex samples of antennas, and "
        "stays else in the product as `selected_frequency`, the middle of what a `dft` or a filter "
        "bank has as frequency 0. "
        "Captures of several frequencies are refused, and those between which samples are missing "
        "by `core:global_index` or `core:datetime`, unless `coordinates` say the times",
        lacks_zero=True,
        beside=(".sigmf-meta", ".sigmf-data"),
        suffix=r"\.sigmf-(meta|data)",
    ),
    "touchstone": Format(
        "scattering parameters of a network, by the package scikit-rf",
        "`scattering` (frequency, port, incident) of an .s1p, .s2p, ... file, of Z parameters too, "
        "and in version 2 of Y, G and H; with the names of modes where two ports are mixed",
        needs="the package scikit-rf: `pip install scikit-rf`",
        suffix=r"\.s[1-9]\d*p",
    ),
    "csi": Format(
        "Wi-Fi channel state of an Intel 5300, as the Linux 802.11n CSI Tool logs it",
        "`channel` (time, frequency, receiver, transmitter): Wi-Fi channel state in the log of "
        "the Linux 802.11n CSI Tool (Intel 5300), relative to the card's reference, receivers in "
        "the order of its antennas. Times are the card's clock, frequencies are from the carrier; "
        "both may be uneven, so a `dft` along them needs `coordinates`",
    ),
}
"""All but HDF5 have a reader in `workflow.readers`."""
