"""ding2019: offline identification of a Staubli TX-60, recomputed in MuJoCo."""

from __future__ import annotations

from dataclasses import fields

import numpy as np

from steelyard._units import NORMAL_95
from steelyard.recording import Preparation
from steelyard.report import Page
from steelyard_papers.ding2019.fits import LAWS, OURS, PAPER, Comparison, compare
from steelyard_papers.ding2019.open_rows import correlation_row, rms_row
from steelyard_papers.ding2019.printed import CORRELATION, DIGIT, RMS, TABLE_3
from steelyard_papers.ding2019.readings import READINGS, readings_that_fit
from steelyard_papers.ding2019.sections import (
    inertial_errors,
    link_counts,
    motion_section,
    parameter_section,
    readings_section,
    scatter_section,
    torque_section,
    what_is_missing,
)
from steelyard_papers.ding2019.world import (
    NOISE,
    SHOULDER,
    THINNING,
    WARMER,
    Motions,
    designed_motions,
    gear_friction,
    paper_arm,
    run_world,
)
from steelyard_papers.explain import explaining_runs
from steelyard_papers.headline import Claim, Count, opening
from steelyard_papers.sharing import Progress, part_of, versions

__all__ = ["page"]


_MISSING = (
    "the values of Table III, which are in a scaled unit; the motion of Fig. 3. The residuals and"
    " correlations of Table IV belong to an arm whose masses, motion, noise and friction are not"
    " printed, so none of them can be confirmed or refuted: what can be checked is the structure,"
    " and that the method works."
)
_AS_HERE = "noise and friction as assumed here"
_NOTE = (
    "Residuals of the verification motion by the parameters of each of ten simulated runs;"
    " friction as in"
    " gears."
)


def page(
    progress: Progress | None = None, *, runs: int = 10, starts: int = 1, effort: float = 0.5
) -> Page:
    """The page of ding2019.

    Args:
        progress: called with the share that is done
        runs: of the excitation in each world, at least 2
        starts: of the search for an excitation
        effort: of the same search
    """
    arm = paper_arm()
    motions = designed_motions(
        arm, starts=starts, effort=effort, progress=part_of(progress, 0.0, 0.3)
    )
    found = []
    worlds = (("as the paper assumes", arm), ("as in gears", gear_friction(arm)))
    for k, (name, robot) in enumerate(worlds):
        begin = 0.3 + 0.35 * k
        end = 0.65 + 0.35 * k
        world = run_world(
            name, robot, motions, runs=runs, progress=part_of(progress, begin, begin + 0.05)
        )
        found.append(compare(world, arm, progress=part_of(progress, begin + 0.05, end)))
    assumed, gears = found
    findings = _findings(motions, assumed, gears)
    claims = _claims(gears)
    answer, first = opening(
        "ding2019", claims, _MISSING, counts=_counts(gears), note=_NOTE, findings=findings
    )
    return Page(
        "ding2019, recomputed: dynamic parameters of a 6-DOF arm considering friction",
        answer,
        [
            *first,
            motion_section(arm, motions),
            parameter_section(assumed),
            torque_section(assumed),
            torque_section(gears),
            readings_section(assumed, gears),
            scatter_section(assumed, gears),
            what_is_missing(),
        ],
        _settings(runs, starts),
    )


def _claims(found: Comparison) -> list[Claim]:
    """Table IV in the world with friction as in gears, run by run."""
    return [*(_rms_claim(j, found) for j in range(6)), *(_correlation(j, found) for j in range(6))]


def _rms_claim(j: int, found: Comparison) -> Claim:
    here = [float(x.rms[j]) for x in found.paper.by_run]
    return Claim(
        f"RMS of joint {j + 1}",
        "Nm",
        RMS[j],
        {_AS_HERE: here, **explaining_runs(rms_row(j, found))},
        {_AS_HERE: [float(x.rms[j]) for x in found.ours.by_run]},
        digit=DIGIT,
        row=f"rms-{j + 1}",
        rests_on="noise and friction",
    )


def _correlation(j: int, found: Comparison) -> Claim:
    here = [float(x.correlation[j]) for x in found.paper.by_run]
    return Claim(
        f"correlation of joint {j + 1}",
        "",
        CORRELATION[j],
        {_AS_HERE: here, **explaining_runs(correlation_row(j, found))},
        {_AS_HERE: [float(x.correlation[j]) for x in found.ours.by_run]},
        digit=DIGIT,
        ideal=1.0,
        row=f"correlation-{j + 1}",
        rests_on="noise and size of the torques",
    )


def _counts(found: Comparison) -> list[Count]:
    """The numbers of parameters."""
    counted, rank = link_counts(found.world.robot)
    listed = [name for name in found.paper.names if name in TABLE_3]
    return [
        Count("parameters of Table III", len(TABLE_3), len(listed)),
        Count("of them of links, eq. (7)", counted, rank),
    ]


def _findings(motions: Motions, assumed: Comparison, gears: Comparison) -> list[str]:
    ratio = np.median(motions.random_conditions) / motions.found.condition_number
    left = [
        float(np.mean(answer.validation.rms / c.floor.rms))
        for c in (assumed, gears)
        for answer in (c.paper, c.ours)
    ]
    there = np.array([c.paper.validation.correlation for c in (assumed, gears)])
    below = [str(j + 1) for j in range(6) if (there[:, j] < CORRELATION[j]).all()]
    fitting = len({words for c in (assumed, gears) for words in readings_that_fit(c)})
    errors, scatter, _ = inertial_errors(gears, "paper")
    held = 100 * float(np.mean(np.abs(errors) < NORMAL_95 * scatter))
    own_errors, _, estimated = inertial_errors(gears, "ours")
    own = 100 * float(np.mean(np.abs(own_errors) < NORMAL_95 * estimated))
    return [
        "The method does what the paper says: the 52 parameters of Table III are the base"
        " parameters of"
        " this arm, and torques of an unseen motion are predicted with correlations of"
        f" {there.min():.3f}"
        f" to {there.max():.3f} (paper: 0.754 to 0.992; here worse than the paper's in joints"
        f" {', '.join(below) or 'none'}).",
        f"Within Table II (shoulder {SHOULDER} m above the ground: assumed) a motion with the"
        " condition"
        f" number {motions.found.condition_number:.0f} was found, {ratio:.1f} times below that of"
        " a random"
        " motion (median); the paper prints none.",
        f"On the same recordings the paper's method leaves {left[0]:.1f} times the noise and ours"
        f" {left[1]:.1f} times where friction is as the paper assumes, {left[2]:.1f} and"
        f" {left[3]:.1f}"
        " times where it is as in gears. Which noise, friction or size of the torques would give a"
        f" number of Table IV, the first table says. {len(READINGS)} readings of its correlations"
        f" were tried, in both worlds; {fitting or 'none'} of them"
        f" {'give' if fitting > 1 else 'gives'} the printed row.",
        "The standard deviation over ten runs is no uncertainty: with friction as in gears, 95 %"
        " intervals"
        f" made of it hold the truth for {held:.0f} % of the parameters of links and rotors; those"
        " that our"
        f" estimates say, for {own:.0f} %.",
    ]


def _in_words(preparation: Preparation) -> str:
    """The settings that are not the package's defaults."""
    pairs = [
        f"{field.name} = {getattr(preparation, field.name)}"
        for field in fields(preparation)
        if getattr(preparation, field.name) != field.default
    ]
    return ", ".join(pairs) or "the defaults of the package"


def _settings(runs: int, starts: int) -> dict[str, str]:
    return {
        "arm": "bundled tx60: kinematics and limits of ding2019, nominal links",
        "recording": "250 Hz, 10 s, MuJoCo with steps of 2 ms; encoder steps of 1e-5 rad",
        "ground": f"{SHOULDER} m below frame 0 (the shoulder): assumed, not printed",
        "runs differ in": f"noise; temperature, {WARMER:g} K over all, {100 * THINNING:g} % of Fv"
        " a degree",
        "torque noise": f"{NOISE.tolist()} Nm, white, assumed",
        "friction as in gears": "Stribeck peak of Fc/4 at 0.1 rad/s, exponent 0.8, 5 % of the"
        " carried torque",
        "runs": str(runs),
        "starts of the design": str(starts),
        "seeds": "design 0, noise from 2019, verification motion from 100, its noise 1",
        "paper's preparation": _in_words(PAPER),
        "our preparation": _in_words(OURS),
        "friction laws tried": ", ".join(LAWS),
        **versions(),
    }
