"""Pictures of equalised symbols: errors over the signal-to-noise ratio."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from workflow import qam
from workflow.data import Product
from workflow.error_counts import EVM, RATE

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def draw_symbols(product: Product, order: int, soft: bool, axes: Axes) -> None:
    """Draw the bit error rate of each precision, and of symbols the error vector magnitude, rms.

    Where no bit is wrong the rate is drawn at half an error.
    """
    from workflow.figures.style import colours_of  # jobs that draw nothing import no Matplotlib

    sent, ratios = product.coordinates["sent"].values, product.coordinates["snr"].values
    bits = sent.size * qam.bits_of(order)
    rates = {
        name.removeprefix(RATE): np.asarray(one.values, float)
        for name, one in product.coordinates.items()
        if name.startswith(RATE)
    }
    if not rates:
        decided = (qam.bits_decided(x) if soft else qam.hard_bits(x, order) for x in product.data)
        wrong = [float(qam.bit_errors(sent, numbers).sum()) for numbers in decided]
        rates = {"": np.array(wrong) / bits}
    colours = colours_of(rates)
    names = list(colours or rates)
    # Curves that lie on each other are seen by their widths.
    widths = {name: 1 + 1.2 * below for below, name in enumerate(reversed(names))}
    for name in names:
        axes.semilogy(
            ratios, np.maximum(rates[name], 0.5 / bits), marker="o", color=colours.get(name),
            linewidth=widths[name], markersize=4,
            label=f"bit error rate, {name}" if name else "bit error rate",
        )  # fmt: skip
    if not soft:
        off = {name: product.coordinates[EVM + name].values for name in names
               if EVM + name in product.coordinates}  # fmt: skip
        for name, decibels in off.items():
            axes.semilogy(
                ratios, 10 ** (decibels / 20), marker="s", ls="--", color=colours.get(name),
                linewidth=widths[name], markersize=3, label=f"EVM, {name}",
            )  # fmt: skip
        if not off:
            symbols = qam.modulated(sent, order)
            rms = [float(np.sqrt(np.square(np.abs(x - symbols)).mean())) for x in product.data]
            axes.semilogy(ratios, rms, marker="s", ls="--", color="grey", label="EVM (rms)")
    axes.set_xlabel("signal-to-noise ratio of a receiver (dB)")
    axes.set_ylabel("bit error rate" if soft else "bit error rate, EVM")
    axes.grid(alpha=0.3, which="both")
    axes.legend(fontsize="small")
