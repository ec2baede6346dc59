"""The log, the packages and the signals of a job, around its one library call."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO


class TerminatedError(BaseException):
    """A scheduler or its user ended the job: nothing that recovers from errors may take it."""


@contextlib.contextmanager
def job_log(path: str | Path) -> Iterator[logging.Logger]:
    """Yield a logger into the job's log file, whose last line is the job's summary or its error.

    An error is written with its traceback, the message last, and ends the process with status 1.
    SIGTERM, as schedulers send it, is such an error: what is half written is removed on the way.
    The file is a new one, so that a job of an earlier run, which may still write into its own, does
    not write into this one. Where it cannot be made, that is said on standard error.
    """
    # Here: the Snakefile imports this module to make argand importable (`share_packages`).
    from argand.runtime.files.plain_files import open_plain, refuse_other

    try:
        refuse_other(Path(path))
        Path(path).unlink(missing_ok=True)
        opened = open_plain(Path(path), os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    except OSError as error:
        sys.exit(f"the job has no log: {error}")
    signal.signal(signal.SIGTERM, _terminate)
    logger = logging.getLogger("argand")
    logger.setLevel(logging.INFO)
    logger.propagate = False
    # A name of a file may have bytes that are no text.
    text = os.fdopen(opened, "w", encoding="utf-8", errors="backslashreplace")
    handler = _Log(text)
    handler.setFormatter(logging.Formatter("%(message)s"))
    logger.addHandler(handler)
    logging.captureWarnings(True)
    logging.getLogger("py.warnings").addHandler(handler)
    reason = ""
    try:
        yield logger
    except (Exception, TerminatedError) as error:
        reason = f"{type(error).__name__}: {' '.join(str(error).split())}"
        logger.error("%s", traceback.format_exc())
        logger.error("%s", reason)
        sys.exit(1)
    finally:
        try:
            handler.close()
            handler.stream.close()
        except OSError as error:
            sys.exit(f"{path}: the job's log was not written: {error}\n{reason}".rstrip())


class _Log(logging.StreamHandler[TextIO]):
    """A job's log. Lines that a full disk keeps out stay in its buffer; the job's end says so."""

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802
        """Print the traceback of an error, unless the disk had no room for the line."""
        if not isinstance(sys.exception(), OSError):
            super().handleError(record)


def _terminate(number: int, frame: object) -> None:
    said = "the job was asked to end (SIGTERM)"
    if "SLURM_JOB_ID" in os.environ:
        said += "; if by its time limit, --set-resources RULE:runtime=MINUTES raises that"
    raise TerminatedError(said)


def share_packages(root: Path) -> None:
    """Let this process and its jobs find the packages in the repository, installed or not.

    Jobs are processes of their own, on a cluster on other machines: they inherit PYTHONPATH.
    """
    folders = [str(root), str(root / "kernels")]
    sys.path[:0] = folders
    inherited = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join(folders + ([inherited] if inherited else []))
