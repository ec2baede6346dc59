"""A list of a study's products before they are made: their axes, and coordinates along them."""

from __future__ import annotations

from workflow.counted import counted
from workflow.data import is_blank
from workflow.inputs.axes import sizes_in_words
from workflow.steps.staging import along_in_words
from workflow.study import Study, outlined

_MAX_SHOWN = 40
"""Workloads in the list: a sweep has thousands."""


def products_list(study: Study) -> str:
    """Return a line for each workload, by which a wrong order of axes or unit is seen in time.

    Coordinates that a check makes no values of, such as the times of many samples, have none here.
    """
    lines = [f"- {name}: {_product_line(study, name)}" for name in study.names[:_MAX_SHOWN]]
    if (more := len(study.names) - _MAX_SHOWN) > 0:
        lines.append(f"- and {counted(more, 'workload')} more")
    return "\n".join(lines)


def _product_line(study: Study, name: str) -> str:
    workload, staged = outlined(study.chain(name))
    product = workload.product_outline(staged)
    parts = [f"{product.name} {sizes_in_words(product.axes, product.data.shape)} {product.units}"]
    for key, one in product.coordinates.items():
        if one.values.size and not is_blank(one.values):
            parts.append(along_in_words(key, one))
    return "; ".join(filter(None, (part.rstrip() for part in parts)))
