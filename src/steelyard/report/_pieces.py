"""Parts that several pages share: torques, residuals, standard deviations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from steelyard._arrays import Array
from steelyard._units import NORMAL_95
from steelyard.drawing import Band, Curve, Panel, Plot
from steelyard.identification import DynamicModel
from steelyard.recording import Samples
from steelyard.verdict import Verdict

WRENCH_AXES = ("fx", "fy", "fz", "τx", "τy", "τz")
WRENCH_UNITS = ("force [N]",) * 3 + ("torque [Nm]",) * 3
_MAX_LAG_S = 1.0  # of autocorrelations, [s]
_WEAK = 0.3  # standard deviation of a weakly determined parameter, over its size
_MIN_DRAWN = 1e-12  # relative standard deviation that is drawn


def judged(verdict: Verdict) -> tuple[list[str], list[str]]:
    """Sentences of a verdict for the answer, and its doubts, each once."""
    blocking = verdict.blocking
    aside = [str(doubt) for doubt in verdict.doubts if doubt not in blocking]
    if verdict.ok:
        return ([str(replace(verdict, doubts=blocking))], aside)
    against = [str(doubt) for doubt in blocking]
    summary = [str(Verdict(verdict.summary))] if verdict.summary else []
    return ([], ["Do not use this:", *against, *summary, *aside])


def torque_plots(
    model: DynamicModel,
    samples: Samples,
    predicted: Mapping[str, Array],
    *,
    titles: Sequence[str],
    caption: str,
    residual_caption: str,
) -> list[Plot]:
    """Plots of torques, of the residual of the first prediction, and of its autocorrelation.

    The sign of the speed of a joint at rest is random. Predictions of a friction law that uses this
    sign jump between two values there and are not drawn.

    Args:
        model: whose friction law made the predictions
        samples: with measured torques
        predicted: torques by name, each (N, n) [Nm or N]
        titles: of the n panels of torque
        caption: of the torques
        residual_caption: of the residuals
    """
    if model.law.direction == "exact":
        shown = samples.mask
    else:
        shown = np.ones_like(samples.mask)
    if shown.all():
        note = ""
    else:
        note = " There is no prediction for joints at rest, whose friction is not determined."
    drawn = {name: np.where(shown, torque, np.nan) for name, torque in predicted.items()}
    residual = samples.tau - next(iter(predicted.values()))
    left = {"residual": np.where(shown, residual, np.nan)}
    return [
        Plot.over_time(
            caption + note,
            samples.t,
            {"measured": samples.tau, **drawn},
            titles,
            units="torque [Nm]",
        ),
        Plot.over_time(
            residual_caption, samples.t, left, samples.joint_names, units="residual [Nm]"
        ),
        autocorrelation_plot(residual, samples.rate_hz, samples.joint_names),
    ]


def autocorrelation_plot(residual: Array, rate_hz: float, names: Sequence[str]) -> Plot:
    """The autocorrelation of a residual, beside that of white noise.

    Args:
        residual: (N, n)
        rate_hz: samples per second, [Hz]
        names: of the n columns
    """
    lags = max(1, min(len(residual) // 4, round(_MAX_LAG_S * rate_hz)))
    values = _autocorrelation(residual, lags)
    lag = np.arange(lags + 1) / rate_hz
    edge = np.full(lags + 1, NORMAL_95 / np.sqrt(len(residual)))
    parts: list[Curve | Band] = [Band("white noise: 95 %", lag, -edge, edge, "#7b8794")]
    parts += [Curve(name, lag, values[:, j]) for j, name in enumerate(names)]
    caption = (
        "Correlation of the residuals in time. Outside the grey band they are not white noise: the"
        " model is incomplete, or a filter smooths them; the intervals of this page include this."
    )
    return Plot(caption, [Panel("", "lag [s]", "autocorrelation", parts)], 1)


def relative_std_plot(caption: str, names: Sequence[str], relative: Array) -> Plot:
    """Bars of relative standard deviations on a logarithmic axis.

    Args:
        caption: of the plot
        names: of the p parameters
        relative: standard deviations over sizes, (p,); infinite ones are left out
    """
    known = [i for i in range(len(names)) if np.isfinite(relative[i]) and relative[i] > _MIN_DRAWN]
    lost = [names[i] for i in range(len(names)) if not np.isfinite(relative[i])]
    if lost:
        words = f" The data do not determine {', '.join(lost)}: no bar."
    else:
        words = ""
    kinds = (("determined by the data", "#2266aa", False), ("weak (above 30 %)", "#d9822b", True))
    parts: list[Curve | Band] = []
    for label, colour, weak in kinds:
        chosen = [i for i in known if (relative[i] > _WEAK) == weak]
        if chosen:
            percent = 100 * np.asarray(relative)[chosen]
            parts.append(Curve(label, [names[i] for i in chosen], percent, "bars", colour=colour))
    order = tuple(names[i] for i in known)
    panel = Panel("", "parameter", "std / size [%]", parts, log_y=True, categories=order)
    return Plot(caption + words, [panel], 1)


def _autocorrelation(signal: Array, most_lags: int) -> Array:
    """The autocorrelation of a signal for lags of 0, 1, 2 ... samples, (most_lags + 1, n)."""
    x = signal - signal.mean(axis=0)
    length = 1 << int(np.ceil(np.log2(2 * len(x))))
    power = np.abs(np.fft.rfft(x, length, axis=0)) ** 2
    products = np.fft.irfft(power, length, axis=0)[: most_lags + 1]
    return np.asarray(products / np.maximum(products[0], 1e-300))
