"""``python -m argand tune gemm|softmax|dft|gates``: measure the fastest here, and keep it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence

from argand.dft.tune import main as tune_dft
from argand.gates.tune import main as tune_gates
from argand.gemm.tune import main as tune_gemm
from argand.softmax.tune import main as tune_softmax

TUNE: dict[str, Callable[[Sequence[str]], int]] = {
    "gemm": tune_gemm,
    "softmax": tune_softmax,
    "dft": tune_dft,
    "gates": tune_gates,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one operation's tuning; the exit status is 2 where the command line is wrong."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if len(given) < 2 or given[0] != "tune" or given[1] not in TUNE:
        print(
            f"usage: python -m argand tune {'|'.join(TUNE)} ... (--help says more)", file=sys.stderr
        )
        return 2
    return TUNE[given[1]](given[2:])


if __name__ == "__main__":
    sys.exit(main())
