"""Check a recording before you believe it, and turn it into samples that can be fitted.

A recording is what was measured: late rows, holes and all. `check_quality` says what is wrong with it, and
`prepare` makes samples: uniform, filtered, differentiated. Nothing is repaired silently.
"""

import csv

import numpy as np

from steelyard import (
    Preparation,
    SteelyardError,
    check_quality,
    load_robot,
    load_trajectory,
    prepare,
    read_recording,
    simulate,
    write_recording,
)

robot = load_robot("ur10")
run = simulate(robot, load_trajectory("xu2024"), seed=3).recording

# A log as a logger writes it: a CSV file with the names that UR's RTDE gives, one row missing, one repeated.
rows = np.column_stack([run.t + 1000.0, run.q, run.current])
rows = np.delete(rows, 400, axis=0)
rows = np.insert(rows, 700, rows[700], axis=0)
with open("log.csv", "w", newline="") as file:
    names = ["timestamp", *(f"actual_q_{i}" for i in range(6)), *(f"actual_current_{i}" for i in range(6))]
    csv.writer(file).writerows([names, *rows.tolist()])

recording = read_recording("log.csv", joint_names=robot.joint_names)
print(f"log.csv: {len(recording)} rows, {recording.rate_hz:.1f} Hz, signals {', '.join(recording.channels)}")
for finding in check_quality(recording, limits=robot.limits).findings:
    print(f"    {finding.severity}: {finding.sentence}")

# Motor currents become torques by the gains of the drives. Without them there is no guess.
try:
    prepare(recording)
except SteelyardError as error:
    print(f"Without gains: {error}")

samples = prepare(recording, drive=robot.drive)
print(f"{len(samples)} samples at {samples.rate_hz:.1f} Hz. What was done:")
for step in samples.made_by:
    print(f"    {step}")

# The filter matters: accelerations are second differences, and noise grows with the square of the rate.
for cutoff_hz in (5.0, 20.0, None):
    a = prepare(recording, Preparation(cutoff_hz=cutoff_hz), drive=robot.drive).a
    words = "Unfiltered" if cutoff_hz is None else f"Cut-off {cutoff_hz:.0f} Hz"
    print(
        f"{words:14s} acceleration jumps by up to {np.abs(np.diff(a, axis=0)).max():.2f} rad/s^2 in a sample."
    )

# A hole is not filled. Degrees instead of radians are noticed.
kept = (recording.t < 4.0) | (recording.t > 4.5)
try:
    prepare(recording.rows(kept), drive=robot.drive)
except SteelyardError as error:
    print(f"With a hole: {error}")
rows[:, 1:7] = np.degrees(rows[:, 1:7])
np.savetxt("degrees.csv", rows, delimiter=",", header=",".join(names), comments="")
print(f"In degrees: {check_quality(read_recording('degrees.csv')).findings[0].sentence}")

write_recording(recording, "log.parquet")  # keeps every field; `steelyard check log.parquet` reads it
