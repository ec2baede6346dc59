"""How far a result is from the truth, and whether it is as close as its precision promises.

Each kind of result has a reference (`references`, SciPy in fp64, computed once) and an
assessment here that compares one result with it and with two bounds of its precision: the
worst case (`bounds`), beyond which a result is wrong, and what is probable (`probabilistic`),
beyond which it is suspect. The bounds decide; no tolerance widens them.
"""

from __future__ import annotations

from workflow.accuracy.channelise_accuracy import (
    ChanneliseReference,
    assess_channelise,
    channelise_reference,
)
from workflow.accuracy.correlation_accuracy import (
    CorrelationReference,
    assess_correlation,
    correlation_reference,
)
from workflow.accuracy.image_accuracy import ImageReference, assess_image, image_reference
from workflow.accuracy.judgement import Accuracy, worst_of
from workflow.accuracy.product_accuracy import assess_product
from workflow.accuracy.references import (
    ProductReference,
    SoftmaxReference,
    SpectrumReference,
    StateReference,
    product_reference,
    softmax_reference,
    spectrum_reference,
    state_reference,
)
from workflow.accuracy.softmax_accuracy import Rounded, assess_softmax
from workflow.accuracy.solution_accuracy import (
    SolutionReference,
    assess_solution,
    solution_reference,
)
from workflow.accuracy.vector_accuracy import assess_spectrum, assess_state

__all__ = [
    "Accuracy",
    "ChanneliseReference",
    "CorrelationReference",
    "ImageReference",
    "ProductReference",
    "Rounded",
    "SoftmaxReference",
    "SolutionReference",
    "SpectrumReference",
    "StateReference",
    "assess_channelise",
    "assess_correlation",
    "assess_image",
    "assess_product",
    "assess_softmax",
    "assess_solution",
    "assess_spectrum",
    "assess_state",
    "channelise_reference",
    "correlation_reference",
    "image_reference",
    "product_reference",
    "softmax_reference",
    "solution_reference",
    "spectrum_reference",
    "state_reference",
    "worst_of",
]
