"""The tables within README.md and the pages of docs/, from code and recorded measurements.

A page marks where a table goes by ``<!-- table: name -->`` and ``<!-- end -->``. No number in them
is typed: they follow from `argand` or from the files under docs/data/, which the pipeline and the
benchmarks wrote. ``<!-- table: recorded FILE ... -->`` says on which device, when and with which
versions files were recorded.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from tools.docs.array_tables import ARRAY_TABLES
from tools.docs.attack_tables import attack_table, exceedances_table, planted_table
from tools.docs.code_tables import devices_table, kinds_table, precisions_table
from tools.docs.cpu_tables import calls_table, ratios_table
from tools.docs.exact_tables import EXACT_TABLES
from tools.docs.file_tables import FILE_TABLES
from tools.docs.gate_tables import GATE_TABLES
from tools.docs.growth_table import growth_table
from tools.docs.headlines import headlines_table
from tools.docs.host_tables import first_calls_table, host_times_table
from tools.docs.product_tables import PRODUCT_TABLES
from tools.docs.provenance import recorded_table, versions_list
from tools.docs.scale_tables import SCALE_TABLES
from tools.docs.study_tables import STUDY_TABLES
from tools.docs.summaries import SUMMARIES
from tools.docs.sweep_tables import SWEEP_TABLES
from tools.docs.transform_tables import TRANSFORM_TABLES
from tools.docs.workspace_table import workspace_limits_table

_REGION = re.compile(r"(<!-- table: ([\w.-]+)((?: [\w.-]+)*) -->\n).*?(<!-- end -->)", re.DOTALL)
_RECORDED = "recorded"


def fill_tables(text: str, data: Path) -> str:
    """Return a page with its tables as they should be now.

    Raises KeyError for the name of a table that there is not, and FileNotFoundError for a file.
    """
    return _REGION.sub(lambda found: f"{found[1]}\n{_table(found, data)}\n{found[4]}", text)


def _table(found: re.Match[str], data: Path) -> str:
    files = found[3].split()
    return recorded_table(data, *files) if found[2] == _RECORDED else TABLES[found[2]](data)


TABLES: dict[str, Callable[[Path], str]] = {
    "attack": attack_table,
    "planted": planted_table,
    "exceedances": exceedances_table,
    "precisions": precisions_table,
    "devices": devices_table,
    "kinds": kinds_table,
    "cpu-ratios": ratios_table,
    "cpu-calls": calls_table,
    "h200-versions": versions_list,
    "h200-headlines": headlines_table,
    "h200-host-times": host_times_table,
    "h200-first-calls": first_calls_table,
    "h200-products-growth": growth_table,
    "h200-workspace": workspace_limits_table,
    **FILE_TABLES,
    **PRODUCT_TABLES,
    **EXACT_TABLES,
    **TRANSFORM_TABLES,
    **GATE_TABLES,
    **STUDY_TABLES,
    **SCALE_TABLES,
    **SUMMARIES,
    **SWEEP_TABLES,
    **ARRAY_TABLES,
}
"""Every table that a page may name."""
