"""Text tables: delimiters, headers, and the ends of logs that a power cut left."""

import numpy as np
import pytest

from steelyard.errors import NoTime, UnreadableFile
from steelyard.io import read
from steelyard.quality import check
from steelyard.recording._notes import NoteKind, has_kind

ROWS = np.array([[0.0, 1.25, -0.5], [0.01, 1.5, -0.75], [0.02, 1.75, 1e-3]])
GOOD = "t,q_0,tau_0\n0.00,1.25,-0.500\n0.01,1.50,-0.750\n0.02,1.75,0.001\n"


@pytest.fixture
def read_text(tmp_path):
    """Writes text or bytes to a file and reads the recording in it."""

    def reader(content, name="log.csv", **requests):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return read(path, **requests)

    return reader


def holds(recording, rows=ROWS):
    np.testing.assert_array_equal(recording.t, rows[:, 0] - rows[0, 0])
    np.testing.assert_array_equal(recording.q[:, 0], rows[:, 1])
    np.testing.assert_array_equal(recording.tau[:, 0], rows[:, 2])


@pytest.mark.parametrize("delimiter", [",", ";", "\t", " ", ", ", "   "])
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_delimiters_and_line_ends(read_text, delimiter, newline):
    recording = read_text(GOOD.replace(",", delimiter).replace("\n", newline), "log.txt")
    holds(recording)
    assert recording.notes == ()
    assert recording.source == "log.txt"


@pytest.mark.parametrize(
    "content",
    [
        "\ufeff" + GOOD,
        "# made by a logger\n# on a Monday\n" + GOOD,
        "# made by a logger\n# " + GOOD,
        "\n\n" + GOOD + "\n\n",
        GOOD.replace("0.01,1.50", "\n0.01,1.50"),
        '"t","q_0","tau_0"\n' + GOOD.split("\n", 1)[1],
        GOOD.replace("1.25", '"1.25"'),
        GOOD.replace("t,", " t ,"),
        GOOD.rstrip("\n"),
        GOOD.replace(",", ";").replace(".", ","),
        "t,q_0,name,tau_0\n0.00,1.25,a b,-0.500\n0.01,1.50,,-0.750\n0.02,1.75,c,0.001\n",
        "  t  q_0  tau_0  \n  0.00   1.25  -0.500 \n  0.01   1.50  -0.750\n 0.02   1.75   0.001 "
        " \n",
    ],
    ids=lambda text: repr(text[:24]),
)
def test_forms_of_a_good_table(read_text, content):
    recording = read_text(content)
    holds(recording)
    assert not any(has_kind(note, NoteKind.DAMAGED_END) for note in recording.notes)


def test_what_numpy_saves(tmp_path):
    np.savetxt(tmp_path / "a.txt", ROWS, header="t q_0 tau_0")
    holds(read(tmp_path / "a.txt"))


def test_empty_cells_are_nan_and_stay(read_text):
    recording = read_text(GOOD.replace("1.50", "").replace("-0.500", "NaN"))
    np.testing.assert_array_equal(recording.q[:, 0], [1.25, np.nan, 1.75])
    np.testing.assert_array_equal(recording.tau[:, 0], [np.nan, -0.75, 0.001])


@pytest.mark.parametrize(
    ("tail", "size", "lines"),
    [
        ("0.03,2.0", 8, 1),
        ("0.03,2.0\n", 9, 1),
        ("0.03,2.00,0.0", 13, 1),
        ("0.03,2.00,1.5e-0", 16, 1),
        ("0.03,2.00,-", 11, 1),
        ("0.03,2.00,\0\0\0\0\n", 15, 1),
        ("\0" * 4096, 4096, 0),
        ("0.0\0\0\0", 6, 1),
        ("0.03,2.00\n\n0.04\n\0\0", 18, 2),
        ("0.03,2.00,0.100,0.03,2\n", 23, 1),
        ("\xff\xfe garbage,,", 14, 1),
    ],
    ids=repr,
)
def test_a_damaged_end_is_left_out_and_noted(read_text, tail, size, lines):
    recording = read_text(GOOD + tail)
    holds(recording)
    words = f"{lines} broken line{'' if lines == 1 else 's'}"
    assert recording.notes == (
        f"damaged end: the last {size} bytes ({words}, from line 5) are left out",
    )
    finding = next(f for f in check(recording).findings if f.kind == "damaged_end")
    assert (finding.severity, finding.place.row) == ("warning", 3)


def test_a_last_line_without_newline_counts_when_it_is_whole(read_text):
    assert len(read_text(GOOD + "0.03,2.00,0.125")) == 4


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            GOOD.replace("0.01,1.50,-0.750", "0.01,1.50"),
            r"log\.csv: line 3 is damaged.*2 fields instead of 3: '0\.01,1\.50'",
        ),
        (
            GOOD.replace("1.50", "1.5x"),
            r"line 3 is damaged, with good lines after it: '1\.5x' is not a number \(column q_0\)",
        ),
        (GOOD.replace("1.50", "\0\0"), r"line 3 is damaged"),
        (GOOD.replace("1.50", "1_5"), r"'1_5' is not a number"),
        (
            "# one\n\n" + GOOD.replace("1.25", "east"),
            r"line 4 is damaged.*'east' is not a number.*; repair or remove",
        ),
        (GOOD.split("\n")[0] + "\n", r"it has a header, but no rows; nothing was recorded"),
        (GOOD.split("\n")[0] + "\n\0\0", r"it has a header, but no rows"),
        (GOOD.split("\n")[0], r"it has a header, but no rows"),
        (
            "t,q_0,tau_0\n1,2\n",
            r"no line after the header has 3 fields with numbers .* the first is line 2: '1,2'",
        ),
        (
            "0.0,1.0\n0.1,1.1\n",
            r"no header but 2 columns of numbers; name each of them, .* `names='t,q\*1,tau\*1'`",
        ),
        (GOOD.encode("utf-16"), r"the text is in UTF-16; save it as UTF-8"),
        (b"\0\0\0\0" + GOOD.encode(), r"it does not begin with text, but with NUL bytes"),
        ("\n\n", r"no time column .*there are: none"),
        (GOOD.replace("0.02", "0.005"), r"log\.csv: time goes back in row 3"),
        (GOOD.replace("0.01", ""), r"log\.csv: time is nan in row 2"),
        (GOOD.replace("t,", "x,"), r"log\.csv: no time column"),
        ("t,q_0,tau_0\n0,1,nan\n1,2,\n", r"log\.csv: tau, column 1 of 1: every value is NaN"),
    ],
)
def test_refusals(read_text, content, message):
    with pytest.raises(UnreadableFile, match=message):
        read_text(content)


def test_numbers_that_only_the_parser_refuses(read_text):
    with pytest.raises(
        UnreadableFile,
        match=r"cannot be read, although every line looks intact; write the table again",
    ):
        read_text(GOOD.replace("1.50", "١"))


def test_a_log_of_rtde_with_its_spaces(read_text, rng):
    words = ("actual_q", "actual_qd", "actual_current", "target_moment", "actual_TCP_force")
    names = ["timestamp", *(f"{word}_{k}" for word in words for k in range(6))]
    rows = np.column_stack([1200 + np.arange(20) / 500, rng.standard_normal((20, 30))])
    text = (
        " ".join(names)
        + "\n"
        + "\n".join(" ".join(repr(float(x)) for x in row) for row in rows)
        + "\n"
    )
    recording = read_text(text, joint_names=tuple("abcdef"))
    np.testing.assert_array_equal(recording.q, rows[:, 1:7])
    np.testing.assert_array_equal(recording.current, rows[:, 13:19])
    np.testing.assert_array_equal(recording.tau_target, rows[:, 19:25])
    assert recording.channels == ("q", "v", "current", "tau_target")
    assert recording.epoch_s == 1200.0
    assert recording.notes[0].startswith("not read: actual_TCP_force")


def test_a_wrench_needs_its_frame_and_convention(read_text):
    text = "t,q_0," + ",".join(f"wrench_{k}" for k in range(6)) + "\n0,1,1,2,3,4,5,6\n"
    with pytest.raises(
        UnreadableFile, match=r"log\.csv: it has a wrench .*but not its frame and convention"
    ):
        read_text(text)
    recording = read_text(text, wrench_frame="tool0", wrench_convention="load_on_sensor")
    np.testing.assert_array_equal(recording.wrench, [[1, 2, 3, 4, 5, 6]])


@pytest.mark.parametrize(
    "text",
    ["0,1.5,2\n0.1,1.25,3\n", "0;1,5;2\n0,1;1,25;3\n", "# made by hand\n0 1.5 2\n0.1 1.25 3\n"],
)
def test_a_table_without_names(tmp_path, text):
    path = tmp_path / "a.csv"
    path.write_text(text)
    found = read(path, names=("t", "q_0", "x"))
    np.testing.assert_array_equal(found.t, [0, 0.1])
    np.testing.assert_array_equal(found.q, [[1.5], [1.25]])
    with pytest.raises(UnreadableFile, match=r"3 columns of numbers \(and 2 names were given\)"):
        read(path, names=("t", "q_0"))


def test_names_of_a_file_that_has_them(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("t,q_0\n0,1\n")
    with pytest.raises(UnreadableFile, match=r"it has a header, 't,q_0'; do not give `names`"):
        read(path, names=("t", "q_0"))


def test_a_rate_replaces_a_column_of_time(read_text):
    without = "\n".join(line.partition(",")[2] for line in GOOD.splitlines()) + "\n"
    holds(read_text(without, rate_hz=100.0))
    holds(read_text(GOOD, rate_hz=100.0, columns={"t": []}))
    with pytest.raises(NoTime, match=r"no time column .* without time: `rate_hz=125`$"):
        read_text(without)
    with pytest.raises(UnreadableFile, match=r"it has a time column, 't': do not give `rate_hz`"):
        read_text(GOOD, rate_hz=100.0)
    for wrong in (0.0, -1.0, float("nan")):
        with pytest.raises(UnreadableFile, match=r"`rate_hz` must be positive, got"):
            read_text(without, rate_hz=wrong)


def test_names_may_be_a_text_as_on_the_command_line(read_text):
    numbers = GOOD.partition("\n")[2]
    holds(read_text(numbers, names="t,q*1,tau*1"))
    holds(read_text(numbers, names=("t", "q_0", "tau_0")))
