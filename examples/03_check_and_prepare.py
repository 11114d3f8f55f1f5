"""Check a recording before you believe it, and turn it into samples that can be fitted.

A recording is what was measured: late rows, holes and all. `check` says what is wrong with
it, and `prepare` makes samples: uniform, filtered, differentiated. Nothing is repaired silently.
"""

import csv

import numpy as np
import pyarrow.csv

import steelyard as sy

robot = sy.load_robot("ur10")
run = sy.simulate(robot, sy.FourierTrajectory.load("xu2024"), seed=3).recording

# A log as a logger writes it: a CSV file with the names that UR's RTDE gives, one row missing, one
# repeated.
rows = np.column_stack([run.t + 1000.0, run.q, run.current])
rows = np.delete(rows, 400, axis=0)
rows = np.insert(rows, 700, rows[700], axis=0)
with open("log.csv", "w", newline="") as file:
    names = [
        "timestamp",
        *(f"actual_q_{i}" for i in range(6)),
        *(f"actual_current_{i}" for i in range(6)),
    ]
    csv.writer(file).writerows([names, *rows.tolist()])

recording = sy.read("log.csv", joint_names=robot.joint_names)
print(
    f"log.csv: {len(recording)} rows, {recording.rate_hz:.1f} Hz, signals"
    f" {', '.join(recording.channels)}"
)
for finding in sy.check(recording, limits=robot.limits).findings:
    print(f"    {finding.severity}: {finding.sentence}")

# Motor currents become torques by the gains of the drives. Without them there is no guess.
try:
    sy.prepare(recording)
except sy.SteelyardError as error:
    print(f"Without gains: {error}")

samples = sy.prepare(recording, drive=robot.drive)
print(f"{len(samples)} samples at {samples.rate_hz:.1f} Hz. What was done:")
for step in samples.made_by:
    print(f"    {step}")

# The filter matters: accelerations are second differences, and noise grows with the square of the
# rate.
for cutoff_hz in (5.0, 20.0, None):
    a = sy.prepare(recording, sy.Preparation(cutoff_hz=cutoff_hz), drive=robot.drive).a
    words = "Unfiltered" if cutoff_hz is None else f"Cut-off {cutoff_hz:.0f} Hz"
    jump = np.abs(np.diff(a, axis=0)).max()
    print(
        f"{words:14s} acceleration jumps by up to {jump:.2f} rad/s^2 from one sample to the next."
    )

# A hole is not filled. `identify` and `weigh` prepare by themselves: they cut there, and the
# verdict says so.
holed = recording.rows((recording.t < 4.0) | (recording.t > 4.5))
try:
    sy.prepare(holed, drive=robot.drive)
except sy.SteelyardError as error:
    print(f"With a hole: {error}")
for doubt in sy.identify(robot, holed, friction="power").verdict.doubts:
    print(f"    {doubt.kind}: {doubt.words}")

# Tables in memory are data too: this one is of Arrow, a data frame of pandas or Polars works alike.
model = sy.identify(robot, pyarrow.csv.read_csv("log.csv"), friction="power")
print(f"From a table in memory: {model.verdict}")

# Degrees instead of radians are noticed.
rows[:, 1:7] = np.degrees(rows[:, 1:7])
np.savetxt("degrees.csv", rows, delimiter=",", header=",".join(names), comments="")
print(f"In degrees: {sy.check(sy.read('degrees.csv')).findings[0].sentence}")

sy.write(recording, "log.parquet")  # keeps every field; `steelyard check log.parquet` reads it
