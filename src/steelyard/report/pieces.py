"""Pieces that pages share: signals over time, residuals with their correlation, intervals, quality."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from steelyard.arrays import Array
from steelyard.quality import QualityReport
from steelyard.report.page import Band, Curve, Panel, Plot, Section, Table

_Z95 = 1.96
_LONGEST_LAG_S = 1.0
_WEAK = 0.3
_SMALLEST = 1e-12


def sentence(words: str) -> str:
    """Words with a capital letter and a full stop.

    Args:
        words: as a status gives them
    """
    text = words.strip()
    return f"{text[:1].upper()}{text[1:]}{'' if text.endswith(('.', '!', '?')) else '.'}" if text else ""


def with_interval(value: float, half: float, unit: str = "") -> str:
    """A number with its 95 % interval, to two digits of the interval, as '3.527 ± 0.011 kg'.

    Args:
        value: the number
        half: half of the interval; infinite where the number is not known
        unit: after it
    """
    words = f" {unit}" if unit else ""
    if not np.isfinite(half):
        return f"{value:.4g}{words} (not known)"
    digits = 4 if half <= 0 else int(np.clip(1 - np.floor(np.log10(half)), 0, 9))
    return f"{value:.{digits}f} ± {half:.{digits}f}{words}"


def time_plot(
    caption: str,
    t: Array,
    signals: Mapping[str, Array],
    names: Sequence[str],
    *,
    units: str | Sequence[str],
    std: Mapping[str, Array] | None = None,
    marks: Sequence[tuple[float, str]] = (),
    columns: int = 2,
) -> Plot:
    """Signals over time, one panel a column.

    Args:
        caption: what to see in it
        t: time, (N,) [s]
        signals: by name in the legend, each (N, k)
        names: of the k panels
        units: label of y, one for all or k
        std: standard deviations of some signals, (N, k): 95 % bands are drawn
        marks: x of vertical lines, each with a word
        columns: panels in a row
    """
    labels = [units] * len(names) if isinstance(units, str) else list(units)
    panels = []
    for k, name in enumerate(names):
        parts: list[Curve | Band] = []
        for key, signal in signals.items():
            y = np.asarray(signal)[:, k]
            if std is not None and key in std:
                half = _Z95 * np.asarray(std[key])[:, k]
                parts.append(Band(f"{key}: 95 %", t, y - half, y + half))
            parts.append(Curve(key, t, y))
        panels.append(Panel(name, "time [s]", labels[k], parts, marks))
    return Plot(caption, panels, columns)


def autocorrelation(signal: Array, most_lags: int) -> Array:
    """The correlation of a signal with itself, later by 0, 1, 2 ... samples, (most_lags + 1, n).

    Args:
        signal: (N, n); its mean is taken off
        most_lags: the largest lag, below N
    """
    x = signal - signal.mean(axis=0)
    length = 1 << int(np.ceil(np.log2(2 * len(x))))
    power = np.abs(np.fft.rfft(x, length, axis=0)) ** 2
    products = np.fft.irfft(power, length, axis=0)[: most_lags + 1]
    return np.asarray(products / np.maximum(products[0], 1e-300))


def autocorrelation_plot(residual: Array, rate_hz: float, names: Sequence[str]) -> Plot:
    """How long residuals remember: their autocorrelation, with what white noise would stay within.

    Args:
        residual: measured less predicted, (N, n)
        rate_hz: samples for each second, [Hz]
        names: of the n signals
    """
    lags = max(1, min(len(residual) // 4, round(_LONGEST_LAG_S * rate_hz)))
    values, lag = autocorrelation(residual, lags), np.arange(lags + 1) / rate_hz
    edge = np.full(lags + 1, _Z95 / np.sqrt(len(residual)))
    parts: list[Curve | Band] = [Band("white noise: 95 %", lag, -edge, edge, "#7b8794")]
    parts += [Curve(name, lag, values[:, j]) for j, name in enumerate(names)]
    caption = (
        "Correlation of the residuals in time. Outside the grey band they are not white noise: the"
        " model misses something, or a filter smears; the intervals of this page are widened for it."
    )
    return Plot(caption, [Panel("", "lag [s]", "autocorrelation", parts)], 1)


def relative_std_plot(caption: str, names: Sequence[str], relative: Array, *, x: str = "parameter") -> Plot:
    """Bars of standard deviations over sizes, on a logarithmic axis; those without an end are left out.

    Args:
        caption: what to see in it
        names: of the parameters
        relative: standard deviation over size, (p,); infinite where the data say nothing
        x: what the names are
    """
    known = [i for i in range(len(names)) if np.isfinite(relative[i]) and relative[i] > _SMALLEST]
    lost = [names[i] for i in range(len(names)) if not np.isfinite(relative[i])]
    words = f" The data say nothing about {', '.join(lost)}: no bar." if lost else ""
    parts: list[Curve | Band] = []
    for label, colour, weak in (
        ("told by the data", "#2266aa", False),
        ("weak (above 30 %)", "#d9822b", True),
    ):
        chosen = [i for i in known if (relative[i] > _WEAK) == weak]
        if chosen:
            parts.append(
                Curve(
                    label,
                    [names[i] for i in chosen],
                    100 * np.asarray(relative)[chosen],
                    "bars",
                    None,
                    colour,
                )
            )
    order = tuple(names[i] for i in known)
    panel = Panel("", x, "std / size [%]", parts, log_y=True, categories=order)
    return Plot(caption + words, [panel], 1)


def convergence_plot(
    t: Array,
    mass: Array,
    mass_std: Array,
    *,
    com: Array | None = None,
    com_std: Array | None = None,
    truth: tuple[float, Sequence[float]] | None = None,
    marks: Sequence[tuple[float, str]] = (),
) -> Plot:
    """An estimate while the arm moves: mass and centre of mass over time with 95 % bands.

    Bands wider than three times the last value are cut, so that the end can be read.

    Args:
        t: time, (N,) [s]
        mass: (N,) [kg]; NaN before the first answer
        mass_std: (N,) [kg]
        com: centre of mass, (N, 3) [m]
        com_std: (N, 3) [m]
        truth: mass [kg] and centre of mass [m] where they are known
        marks: times with a word, as ('picked up')
    """
    panels = [
        _converging("mass", "mass [kg]", t, (mass, mass_std), None if truth is None else truth[0], marks)
    ]
    for i in range(0 if com is None or com_std is None else 3):
        pair = (1e3 * np.asarray(com)[:, i], 1e3 * np.asarray(com_std)[:, i])
        known = None if truth is None else 1e3 * truth[1][i]
        name = f"centre of mass {'xyz'[i]}"
        panels.append(_converging(name, f"{'xyz'[i]} [mm]", t, pair, known, marks))
    return Plot("The estimate while the arm moves, with its 95 % interval.", panels)


def quality_section(reports: Mapping[str, QualityReport]) -> Section:
    """What was found in the recordings, the worst first.

    Args:
        reports: by name of the recording
    """
    rows: list[list[str | float | None]] = []
    for name, report in reports.items():
        rows.append(
            [name, report.rows, report.joints, report.duration_s, report.rate_hz, *report.counts.values()]
        )
    head = ("recording", "rows", "joints", "duration [s]", "rate [Hz]", "errors", "warnings", "infos")
    parts = [Table("The recordings.", head, rows)]
    findings = [(name, f.severity, f.sentence) for name, report in reports.items() for f in report.findings]
    if findings:
        parts.append(Table("What was found in them.", ("recording", "severity", "finding"), findings))
    words = [] if findings else ["Nothing was found that needs care."]
    return Section("Quality of the recordings", words, parts)


def quality_doubts(reports: Mapping[str, QualityReport]) -> list[str]:
    """Errors in recordings, as doubts about what was made from them.

    Args:
        reports: by name of the recording
    """
    return [
        f"{name}: {finding.sentence}"
        for name, report in reports.items()
        for finding in report.findings
        if finding.severity == "error"
    ]


def _converging(
    title: str,
    label: str,
    t: Array,
    pair: tuple[Array, Array],
    truth: float | None,
    marks: Sequence[tuple[float, str]],
) -> Panel:
    value, half = np.asarray(pair[0], dtype=float), _Z95 * np.asarray(pair[1], dtype=float)
    finite = np.flatnonzero(np.isfinite(value) & np.isfinite(half))
    reach = 0.0
    if finite.size:
        settled = value[finite[len(finite) // 2 :]]
        reach = 3 * max(float(np.abs(settled).max()), float(half[finite[-1]]), 1e-9)
    middle = float(value[finite[-1]]) if finite.size else 0.0
    inside = (middle - reach, middle + reach)
    shown = np.where((value >= inside[0]) & (value <= inside[1]), value, np.nan)
    low, high = np.clip(value - half, *inside), np.clip(value + half, *inside)
    parts: list[Curve | Band] = [Band("95 %", t, low, high), Curve("estimate", t, shown)]
    if truth is not None:
        parts.append(Curve("truth", np.array([t[0], t[-1]]), np.full(2, truth), "dashed"))
    return Panel(title, "time [s]", label, parts, marks)
