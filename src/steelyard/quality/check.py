"""The whole check of a recording, from all of its parts."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from steelyard.errors import InvalidRecording
from steelyard.quality.clock import damaged_end, not_finite, repeats, steps
from steelyard.quality.effort import at_torque_limit, flat_effort, saturation
from steelyard.quality.motion import (
    Limits,
    degrees,
    jumps,
    other_joints,
    outside_limits,
    still_joints,
    velocity,
)
from steelyard.quality.report import QualityReport
from steelyard.recording import Recording


def check_quality(
    recording: Recording,
    *,
    limits: Limits | None = None,
    expected_joints: int | None = None,
    tau_max: ArrayLike | None = None,
) -> QualityReport:
    """What is wrong with a recording, the worst first.

    Args:
        recording: as measured
        limits: limits of the joints (`robot.limits`); makes the search for degrees and saturation sharper
        expected_joints: number of joints of the arm; that of the limits when None
        tau_max: largest torque, (n,) [Nm or N]; that of the limits when None
    """
    if tau_max is not None and np.shape(tau_max) != (recording.n,):
        raise InvalidRecording(f"tau_max must hold {recording.n} numbers, got shape {np.shape(tau_max)}")
    if expected_joints is None and limits is not None:
        expected_joints = int(np.size(limits.q_min))
    findings = [*other_joints(recording, expected_joints)]
    if limits is not None and np.size(limits.q_min) != recording.n:
        limits = None
    if tau_max is None and limits is not None:
        tau_max = limits.tau_max
    findings += [*damaged_end(recording), *not_finite(recording), *steps(recording), *repeats(recording)]
    findings += [
        *degrees(recording, limits),
        *velocity(recording),
        *jumps(recording),
        *still_joints(recording),
    ]
    findings += [*flat_effort(recording), *saturation(recording), *at_torque_limit(recording, tau_max)]
    if not any(finding.kind == "degrees" for finding in findings):
        findings += outside_limits(recording, limits)
    findings.sort(key=lambda finding: ("error", "warning", "info").index(finding.severity))
    return QualityReport(
        source=recording.source,
        rows=len(recording),
        joints=recording.n,
        duration_s=recording.duration_s,
        rate_hz=recording.rate_hz,
        findings=tuple(findings),
    )
