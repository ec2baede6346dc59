"""The libraries that ours is measured beside, one file each, in studies and in benchmarks alike.

To add one, add a file here with a `Peer` called ``PEER``: the pipeline, the benchmarks, the check
of a study and the figures find it. ``python -m benchmarks.peers`` lists what there is and what is
missing. Modules with an underscore are not peers: the protocol, the registry, and what a peer keeps
apart, such as a library's bindings or a kernel in Triton.

A peer's file imports its library in functions only, because every job of a study imports all files
here. It uses argand and nothing of workflow or of the other benchmarks.
"""

from benchmarks.peers._image import bytes_of_image
from benchmarks.peers._peer import (
    Candidate,
    CannotRunError,
    Operation,
    Peer,
    absent,
    seconds_to_choose_by,
    unscaled,
)
from benchmarks.peers._registry import (
    benchmark_names,
    candidates,
    peers_of,
    study_modules,
    study_names,
    study_peers,
)

__all__ = [
    "Candidate",
    "CannotRunError",
    "Operation",
    "Peer",
    "absent",
    "benchmark_names",
    "bytes_of_image",
    "candidates",
    "peers_of",
    "seconds_to_choose_by",
    "study_modules",
    "study_names",
    "study_peers",
    "unscaled",
]
