"""The page of a shift: its picks, alarms, charts of each part, and friction over the shift."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from steelyard._arrays import Array
from steelyard.drawing import Curve, Panel, Plot
from steelyard.payload import Part
from steelyard.picking import Decision, Pick, Shift
from steelyard.picking._control_chart import cusum
from steelyard.report._page import Cell, Page, Section, Table

_ALARM = "#c23030"
_GOOD = "#2266aa"
_UNCLEAR = "#d9822b"
_LIMIT = "#52606d"
_MAX_BINS = 24
_MAX_LISTED = 200  # rows of the table of all picks
_CUSUM_LIMIT = 5.0


def picks_page(shift: Shift, torques: Mapping[int, Plot] | None = None) -> Page:
    """The page of a shift.

    Args:
        shift: with its picks
        torques: curves of picks with an alarm, by number of the pick
    """
    masses = _individuals_plot(shift)
    sections = [
        Section("Picks over the shift", (), [masses, *_batch_tables(shift)]),
        _alarm_section(shift, torques or {}),
        Section("Distribution and slow changes", _chart_words(shift), _part_plots(shift)),
        *_friction_sections(shift),
        Section("All picks", (), [_all_picks(shift)]),
    ]
    return Page(
        "Picks of a shift",
        _answer(shift),
        [section for section in sections if section.parts or section.text],
        doubts=[f"{note[0].upper()}{note[1:]}.".replace("+-", "±") for note in shift.notes],
        picture=[masses],
        badge=_badge(shift),
    )


def _answer(shift: Shift) -> list[str]:
    words = [f"{shift.summary}."]
    words += [f"{batch.words[0].upper()}{batch.words[1:]}." for batch in shift.batches]
    return [sentence.replace("+-", "±") for sentence in words]


def _badge(shift: Shift) -> tuple[str, str]:
    if not shift.has_alarms:
        return "use", f"{len(shift.picks)} picks, no alarm"
    count = len(shift.alarms)
    what = f"{count} alarm{'s' if count > 1 else ''}" if count else "a lot outside its tolerance"
    return "do not use", f"{len(shift.picks)} picks, {what}"


def _individuals_plot(shift: Shift) -> Plot:
    """Each pick with its interval, by kind of decision, and the limits of the parts."""
    curves = []
    for name, colour, chosen in (
        ("good", _GOOD, lambda pick: pick.decision is Decision.GOOD),
        ("unclear", _UNCLEAR, lambda pick: pick.decision is Decision.UNCLEAR),
        ("alarm", _ALARM, lambda pick: pick.is_alarm),
    ):
        picks = [pick for pick in shift.picks if pick.mass is not None and chosen(pick)]
        if picks:
            curves.append(_points(name, picks, colour))
    numbers = np.array([0.5, len(shift.picks) + 0.5])
    for part in shift.parts:
        for k, limit in enumerate((part.mass - part.tolerance, part.mass + part.tolerance)):
            name = f"{part.name}: tolerance" if k == 0 else ""
            curves.append(Curve(name, numbers, np.full(2, limit), "dashed", colour=_LIMIT))
    panel = Panel("mass of each pick", "pick", "mass [kg]", curves)
    return Plot("Absolute mass of each pick with its 95 % interval.", [panel], 1)


def _points(name: str, picks: Sequence[Pick], colour: str) -> Curve:
    x = np.array([float(pick.number) for pick in picks])
    measured = [pick.mass for pick in picks if pick.mass is not None]
    y = np.array([mass.value for mass in measured])
    std = np.array([mass.std for mass in measured])
    return Curve(name, x, y, "dots", y_std=std, colour=colour)


def _batch_tables(shift: Shift) -> list[Table]:
    rows: list[list[Cell]] = []
    met: list[bool | None] = []
    for batch in shift.batches:
        part = _part(shift, batch.part)
        nominal = None if part is None else part.mass
        tolerance = None if part is None else part.tolerance
        rows.append(
            [
                batch.part or "picks",
                batch.picks,
                batch.mass.value,
                batch.mass.half_width,
                f"{batch.scatter:.4f}",
                nominal,
                None if tolerance is None else f"{tolerance:g}",
            ]
        )
        met.append(None if part is None else not batch.is_alarm)
    if not rows:
        return []
    found = ("good picks", "mean [kg]", "± (95 %)", "scatter [kg]")
    head = ("part", *found, "should be [kg]", "tolerance [kg]")
    caption = "The lot of each part: mean of the absolute masses."
    return [Table(caption, head, rows, met=met)]


def _alarm_section(shift: Shift, torques: Mapping[int, Plot]) -> Section:
    rows = [_row(pick) for pick in shift.alarms]
    if not rows:
        return Section("Alarms", ("There were no alarms.",))
    head = ("pick", "time [s]", "decision", "mass [kg]", "± (95 %)", "why")
    links = [
        torques[pick.number].caption if pick.number in torques else "" for pick in shift.alarms
    ]
    table = Table("Picks with a fault.", head, rows, _curves_note(shift, torques), links=links)
    return Section("Alarms", (), [table, *torques.values()])


def _curves_note(shift: Shift, torques: Mapping[int, Plot]) -> str:
    """Where the curves of the alarms are."""
    if not torques:
        return ""
    if len(torques) < len(shift.alarms):
        return (
            f"The torques of the first {len(torques)} alarms are below; their numbers lead there."
        )
    return "The torques of each are below; the numbers lead there."


def _row(pick: Pick) -> list[Cell]:
    mass = None if pick.mass is None else pick.mass.value
    half = None if pick.mass is None else pick.mass.half_width
    decision = str(pick.decision)
    if pick.decision is Decision.WRONG_PART:
        decision += f" ({pick.fits})"
    when = f"{pick.close_s:.1f}"
    why = "; ".join(pick.reasons).replace("+-", "±")
    return [str(pick.number), when, decision, mass, half, why]


def _all_picks(shift: Shift) -> Table:
    head = ("pick", "time [s]", "decision", "mass [kg]", "± (95 %)", "remarks")
    rows = [_row(pick) for pick in shift.picks[-_MAX_LISTED:]]
    note = ""
    if len(shift.picks) > _MAX_LISTED:
        note = f"The last {_MAX_LISTED} of {len(shift.picks)}; a table holds all (-o picks.csv)."
    return Table("Every pick in the order of time.", head, rows, note)


def _chart_words(shift: Shift) -> list[str]:
    if not shift.batches:
        return []
    return [
        "The right panels are cumulative sums (CUSUM) of the deviations of good picks from the mean"
        " of the first ones, in standard deviations, less half a deviation for each pick. A curve"
        f" beyond {_CUSUM_LIMIT:g} shows that the parts, or the arm, have changed slowly."
    ]


def _part_plots(shift: Shift) -> list[Plot]:
    """A histogram and a CUSUM chart for each part."""
    out = []
    for batch in shift.batches:
        chosen = [
            pick
            for pick in shift.picks
            if pick.part == batch.part and pick.decision is Decision.GOOD and pick.mass is not None
        ]
        values = np.array([pick.mass.value for pick in chosen if pick.mass is not None])
        name = batch.part or "picks"
        panels = [_histogram(name, values, _part(shift, batch.part))]
        if len(chosen) > 2:
            panels.append(_cusum_panel(name, chosen, shift))
        out.append(Plot(f"'{name}': absolute masses of {batch.picks} good picks.", panels, 2))
    return out


def _histogram(name: str, values: Array, part: Part | None) -> Panel:
    bins = int(np.clip(np.sqrt(len(values)) * 2, 4, _MAX_BINS))
    counts, edges = np.histogram(values, bins)
    x = np.repeat(edges, 2)
    y = np.concatenate([[0], np.repeat(counts, 2), [0]]).astype(float)
    marks = [] if part is None else [(part.mass, "should be")]
    curve = Curve("good picks", x, y, colour=_GOOD)
    return Panel(f"{name}: distribution", "mass [kg]", "picks", [curve], marks)


def _cusum_panel(name: str, picks: Sequence[Pick], shift: Shift) -> Panel:
    common = dict(zip((pick.number for pick in shift.picks), shift.common_std, strict=True))
    values = np.array([pick.mass.value for pick in picks if pick.mass is not None])
    own = np.array(
        [
            np.sqrt(max(pick.mass.std**2 - common[pick.number] ** 2, 1e-12))
            for pick in picks
            if pick.mass is not None
        ]
    )
    up, down = cusum(values, own)
    x = np.array([float(pick.number) for pick in picks])
    ends = x[[0, -1]]
    curves = [
        Curve("heavier", x, up, colour=_GOOD),
        Curve("lighter", x, -down, colour=_UNCLEAR),
        Curve("limit", ends, np.full(2, _CUSUM_LIMIT), "dashed", colour=_ALARM),
        Curve("", ends, np.full(2, -_CUSUM_LIMIT), "dashed", colour=_ALARM),
    ]
    return Panel(f"{name}: CUSUM", "pick", "standard deviations", curves)


def _friction_sections(shift: Shift) -> list[Section]:
    if not len(shift.friction_t):
        return []
    percent = 100 * shift.friction
    curves = [
        Curve(name, shift.friction_t, percent[:, j]) for j, name in enumerate(shift.joint_names)
    ]
    panel = Panel("friction", "time [s]", "friction [% of the model]", curves)
    words = (
        "Friction of each joint at 0.5 rad/s, from the unloaded stretches, over that of the model."
    )
    return [Section("Friction over the shift", (), [Plot(words, [panel], 1)])]


def _part(shift: Shift, name: str) -> Part | None:
    return next((part for part in shift.parts if part.name == name), None)
