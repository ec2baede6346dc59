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
    for turn, name in enumerate(colours or rates):
        # Curves that lie on each other are seen by their widths.
        axes.semilogy(
            ratios, np.maximum(rates[name], 0.5 / bits), marker="o", color=colours.get(name),
            linewidth=1 + 1.2 * (len(rates) - 1 - turn), markersize=4,
            label=f"bit error rate, {name}" if name else "bit error rate",
        )  # fmt: skip
    if not soft:
        off = {name: product.coordinates.get(EVM + name) for name in colours or rates}
        for turn, (name, one) in enumerate(off.items()):
            if one is not None:
                axes.semilogy(
                    ratios, 10 ** (one.values / 20), marker="s", ls="--", color=colours.get(name),
                    linewidth=1 + 1.2 * (len(off) - 1 - turn), markersize=3, label=f"EVM, {name}",
                )  # fmt: skip
        if all(one is None for one in off.values()):
            symbols = qam.modulated(sent, order)
            rms = [float(np.sqrt(np.square(np.abs(x - symbols)).mean())) for x in product.data]
            axes.semilogy(ratios, rms, marker="s", ls="--", color="grey", label="EVM (rms)")
    axes.set_xlabel("signal-to-noise ratio of a receiver (dB)")
    axes.set_ylabel("bit error rate" if soft else "bit error rate, EVM")
    axes.grid(alpha=0.3, which="both")
    axes.legend(fontsize="small")
