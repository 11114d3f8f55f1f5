"""Recordings in and out of files: the door of the room for measured signals.

    recording = read_recording("log.csv", columns={"tau": "effort_"})
    write_recording(recording, "log.parquet")

Parquet and NPZ keep every field of a Recording. Text tables, ROS 2 bags and foreign files keep only numbers
under names; what they leave open (a wrench's frame, degrees, what an effort is) is an argument, never a
guess, and what is not read is told in `notes`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from steelyard.errors import InvalidRecording, UnreadableFile
from steelyard.io.blocks import Cutter, cut
from steelyard.io.columns import Wishes
from steelyard.io.files import file_kind
from steelyard.io.layout import Layout, facts_of, piece_of
from steelyard.io.npz import read_npz, write_npz
from steelyard.io.parquet import parquet_layout, parquet_pieces, read_parquet, write_parquet
from steelyard.io.rosbag import read_bag
from steelyard.io.tables import read_table
from steelyard.recording import Recording, WrenchConvention

_READERS = {"parquet": read_parquet, "npz": read_npz, "text": read_table, "bag": read_bag}
_WRITERS = {".parquet": write_parquet, ".npz": write_npz}


def read_recording(
    path: str | Path,
    *,
    columns: Mapping[str, str | Sequence[str]] | None = None,
    joint_names: Sequence[str] = (),
    wrench_frame: str | None = None,
    wrench_convention: WrenchConvention | None = None,
    degrees: bool = False,
) -> Recording:
    """The recording in a file: Parquet, NPZ, a text table with a header (.csv, .tsv, .txt), or a ROS 2 bag.

    Columns are found by name (`q_0`, `qd_0`, `tau_0`, `actual_q_0`, ...). What is not read, and a damaged end
    that was left out, is told in the recording's `notes`. See docs/recordings.md.

    Args:
        path: the file, or the folder of a bag
        columns: for a channel of Recording or 't', the list of its columns, their word without the index, or
            what their names begin with; an empty list leaves the channel out. Of a bag: 'q' and 'wrench' are
            topics, and 'effort' is either 'tau' or 'current'
        joint_names: names of the joints, instead of those in the file; of a bag: the joints to read, in order
        wrench_frame: frame of the wrench; needed where a foreign file has one and does not say
        wrench_convention: 'load_on_sensor' or 'sensor_on_load'; needed where a foreign file has a wrench
        degrees: whether joint angles and their derivatives are in degrees; all joints must then be revolute
    """
    path = Path(path)
    wishes = Wishes(dict(columns or {}), tuple(joint_names), wrench_frame, wrench_convention, degrees)
    return _READERS[file_kind(path)](path, wishes)


def write_recording(recording: Recording, path: str | Path) -> None:
    """Write a recording with all its fields, as .parquet or .npz.

    It is written beside its place and moved there when complete, so a failure leaves the old file as it was.

    Args:
        recording: what is written
        path: the file, made or replaced
    """
    path = Path(path)
    writer = _WRITERS.get(path.suffix.lower())
    if writer is None:
        raise UnreadableFile(
            f"{path}: a recording is not written to '{path.suffix}' files, which would lose names, frames"
            f" and notes; known are {', '.join(_WRITERS)}"
        )
    writer(recording, path)


def recording_blocks(
    path: str | Path,
    *,
    block_s: float,
    overlap_s: float,
    columns: Mapping[str, str | Sequence[str]] | None = None,
    joint_names: Sequence[str] = (),
    wrench_frame: str | None = None,
    wrench_convention: WrenchConvention | None = None,
    degrees: bool = False,
) -> Iterator[Recording]:
    """The recording in a file, block by block; of a Parquet file only a block is in memory at a time.

    Block k answers for the times from k block_s up to (k+1) block_s since the first row of the file, and has
    overlap_s more before and after where there are rows, to be cut off again after a zero-phase filter. Its
    `epoch_s` says where it begins on the file's clock. Where a hole in the file leaves a block without rows
    of its own, the block is left out.

    Args:
        path: the file
        block_s: length of a block without its overlaps, [s]
        overlap_s: what it has more on either side, [s]
        columns: as in `read_recording`
        joint_names: as in `read_recording`
        wrench_frame: as in `read_recording`
        wrench_convention: as in `read_recording`
        degrees: as in `read_recording`
    """
    if not block_s > 0 or not overlap_s >= 0:
        raise InvalidRecording(
            f"block_s must be positive and overlap_s not negative, got {block_s} and {overlap_s}"
        )
    path = Path(path)
    wishes = Wishes(dict(columns or {}), tuple(joint_names), wrench_frame, wrench_convention, degrees)
    kind = file_kind(path)
    if kind == "parquet":
        layout = parquet_layout(path, wishes)
        return cut(parquet_pieces(path, layout), layout, Cutter(block_s, overlap_s), place=str(path))
    recording = _READERS[kind](path, wishes)
    return cut(
        [piece_of(recording)], Layout({}, facts_of(recording)), Cutter(block_s, overlap_s), place=str(path)
    )
