"""Programmatic dependent launch (sm_90): a kernel begins while the one before it ends.

Every kernel of ours begins with `WAIT_FIRST`, except a product by wgmma behind the packing of its
own operands (``begins_early`` of `argand.gemm.sm90.launch`), which waits before it reads what that
wrote. One that is launched so (`runtime.driver.launch_config`), or follows by an edge of a graph,
takes its multiprocessors as soon as all blocks of the one before have ended or have said that they
may, and waits there until that one's writes are visible.
"""

from __future__ import annotations

import re

WAIT_FIRST = "    griddepcontrol_wait();\n"
"""First statement of a kernel (`device/dependent_launch.cuh`), before any access to memory."""
_FIRST_ARCH = 90


def waits_first(source: str, target: str) -> bool:
    """Return whether a kernel of this source, compiled for ``sm_80`` or ``sm_90a``, waits first."""
    found = re.match(r"sm_(\d+)", target)
    return found is not None and int(found[1]) >= _FIRST_ARCH and WAIT_FIRST in source
