"""The command ``argand``, also ``python -m argand``.

run, check, report, compare: a study (`argand.command.study`); tune: measure the fastest plans here,
and keep them; doctor: what this machine has and what would be used.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module

from argand import __version__
from argand.command import study
from argand.command.children import ended

TUNED = ("gemm", "softmax", "dft", "gates")
USAGE = f"""usage: argand run [STUDY]       products, tables, figures and a report below results/
       argand check [STUDY]     its mistakes, or what it will need and make
       argand report [STUDY]    the report again, of what a run left
       argand compare A B       what changed from one run to another
       argand tune {"|".join(TUNED)}    measure the fastest plans on this machine's GPU, keep them
       argand doctor            what this machine has, and what argand would use of it
Each but doctor says more with --help, tune behind what it tunes: argand tune gemm --help."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the exit status is its own, 2 where the command line is wrong."""
    return ended(partial(_run, list(sys.argv[1:] if arguments is None else arguments)))


def _run(words: list[str]) -> int:
    if words and words[0] in study.COMMANDS:
        return study.main(words)
    if len(words) > 1 and words[0] == "tune" and words[1] in TUNED:
        tune: Callable[[Sequence[str]], int] = import_module(f"argand.{words[1]}.tune").main
        return tune(words[2:])
    if words == ["doctor"]:
        from argand.command import doctor

        return doctor.main()
    if words == ["--version"]:
        print(f"argand {__version__}")
        return 0
    helped = words[-1:] in (["--help"], ["-h"]) and words[:-1] in ([], ["doctor"], ["tune"])
    if words[:1] == ["tune"] and not helped:
        print(f"argand tune takes one of {', '.join(TUNED)} first", file=sys.stderr)
    elif words and not helped:
        print(f"argand: there is no command {' '.join(words)!r}", file=sys.stderr)
    print(USAGE, file=sys.stdout if helped else sys.stderr)
    return 0 if helped else 2


if __name__ == "__main__":
    sys.exit(main())
