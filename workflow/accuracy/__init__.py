"""The distance of a result from the truth, and the verdict by the bounds of its precision.

Each kind of result has a reference (`references`, SciPy in fp64, computed once) and an
assessment that compares one result with it and with two bounds of its precision: the
worst case (`bounds`), beyond which a result is wrong, and what is probable (`probabilistic`),
beyond which it is suspect. The bounds decide; no tolerance widens them.
"""

from __future__ import annotations

from workflow.accuracy.assessment import Accuracy, worst_of

__all__ = ["Accuracy", "worst_of"]
