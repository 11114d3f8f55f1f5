"""Waiting for a condition instead of for a time, however slow the machine is."""

import time

PATIENCE_S = 120.0


def wait_until(condition, *, pause_s=0.002):
    """Returns what the condition returns, as soon as that is true."""
    end = time.monotonic() + PATIENCE_S
    while not (found := condition()):
        assert time.monotonic() < end, "it never came true"
        time.sleep(pause_s)
    return found
