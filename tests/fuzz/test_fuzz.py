"""Malformed files, arguments and streams: one line and exit code 2, never anything else."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

FUZZER = Path(__file__).with_name("fuzzer.py")
CASES, SEED = 70, 20261118


@pytest.mark.thorough
def test_malformed_files_are_refused_in_one_line():
    words = [sys.executable, str(FUZZER), str(CASES), str(SEED)]
    env = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(words, capture_output=True, text=True, timeout=600, env=env)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{CASES} cases, 0 wrong" in done.stdout
