"""The command `steelyard`, also as `python -m steelyard`: the process around the command line.

What compiled libraries print goes nowhere: words and JSON stay as we wrote them. Ctrl-C ends the
process at once, without a way back through compiled code, which may not survive it; what wants to
finish its work first asks for the exception (`computing.interruptible`). STEELYARD_DEBUG=1 shows
everything, tracebacks too.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import TextIO

_DEBUG = os.environ.get("STEELYARD_DEBUG") == "1"
_STOPPED = 130
_CANNOT_PRINT = 2


def main() -> None:
    """Runs the command line; says what to install where its extra is missing."""
    code = 0
    signal.signal(signal.SIGINT, _leave)
    if not _DEBUG:
        _silence()
    try:
        try:
            from steelyard.cli import run
        except ModuleNotFoundError as error:
            if error.name not in ("typer", "rich"):
                raise
            sys.exit("the command line needs typer and rich: pip install 'steelyard[cli]'")
        run()
    except SystemExit as stop:
        if isinstance(stop.code, str):
            raise
        code = int(stop.code or 0)
    try:
        sys.stdout.flush()
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what waits is lost
        if code != _CANNOT_PRINT:  # else it was said
            sys.stderr.write(f"error: cannot print: {error.strerror}\n")
        code = _CANNOT_PRINT
    sys.exit(code)


def _leave(*_: object) -> None:
    """Ends the process: a line, no file that is half written, exit code 130."""
    saved = sys.modules.get("steelyard.saved")
    if saved is not None:
        saved.abandon()
    output = sys.modules.get("steelyard.cli.output")
    try:
        if sys.stderr.isatty():
            sys.stderr.write("\x1b[?25h")  # a progress bar hides the cursor
        if output is not None:
            output.Output("--json" in sys.argv).complain("stopped")
        else:
            sys.stderr.write("error: stopped\n")
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(_STOPPED)


def _silence() -> None:
    """Leaves stdout and stderr to Python alone; what compiled code and libraries print besides is dropped."""
    import logging
    import threading
    import warnings

    nowhere = os.open(os.devnull, os.O_RDWR)
    sys.stdout, sys.stderr = _apart(sys.stdout, 1, nowhere), _apart(sys.stderr, 2, nowhere)
    vars(sys).update(__stdout__=sys.stdout, __stderr__=sys.stderr)  # whose widths are asked for
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    threading.excepthook = lambda _: None
    sys.unraisablehook = lambda _: None


def _apart(stream: TextIO | None, number: int, nowhere: int) -> TextIO:
    """The stream on a descriptor of its own; its old one leads nowhere."""
    if stream is None:  # closed by the caller
        os.dup2(nowhere, number)
        return open(os.devnull, "w", encoding="utf-8")
    apart = os.dup(number)
    os.dup2(nowhere, number)
    if number == 2 or os.isatty(apart):
        lines = 1
    else:
        lines = -1
    return open(apart, "w", buffering=lines, encoding=stream.encoding, errors="backslashreplace")


if __name__ == "__main__":
    main()
