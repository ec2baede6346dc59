"""Lists every peer: what it computes and where, whether studies measure it, what is installed.

python -m benchmarks.peers
"""

from __future__ import annotations

import sys
from collections.abc import Set

from argand.device import devices

from benchmarks.peers._peer import CannotRunError, Peer
from benchmarks.peers._registry import every


def main() -> int:
    """Print a line for each."""
    here = {device.backend for device in devices()}
    for peer in every().values():
        studies = "studies" if peer.compute is not None else "-"
        print(
            f"{peer.operation:10} {peer.name:16} {','.join(peer.backends):9} "
            f"{','.join(peer.precisions):17} {studies:8} {_found(peer, here)}"
        )
    return 0


def _found(peer: Peer, here: Set[str]) -> str:
    """Return version and algorithm, or what is missing."""
    if not here & set(peer.backends):
        return "needs a GPU"
    try:
        return f"{peer.installed()}, {peer.algorithm(peer.precisions[0])}"
    except CannotRunError as error:
        return str(error)


if __name__ == "__main__":
    sys.exit(main())
