"""The command `steelyard`, also as `python -m steelyard`: the process around the command line.

The output of compiled libraries is discarded, so that only our text and JSON are printed. Ctrl-C
ends the process at once, because compiled code may not survive an exception; a function that must
finish its work first asks for the exception (`_computing.interruptible`). STEELYARD_DEBUG=1 shows
all output and tracebacks.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import TextIO

_DEBUG = os.environ.get("STEELYARD_DEBUG") == "1"
_INTERRUPTED = 130
_CANNOT_PRINT = 2


def main() -> None:
    """Runs the command line, or names the extra to install where it is missing."""
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
    except BrokenPipeError:  # the reader, say `head`, has seen enough
        _discard_stdout()
    except OSError as error:
        _discard_stdout()
        if code != _CANNOT_PRINT:  # otherwise an error was printed already
            sys.stderr.write(f"error: cannot print: {error.strerror}\n")
        code = _CANNOT_PRINT
    sys.exit(code)


def _discard_stdout() -> None:
    """Discards what stdout still holds, so that Python can close it."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _leave(*_: object) -> None:
    """Ends the process with a message and exit code 130; removes files that are half written."""
    saved = sys.modules.get("steelyard._saved")
    if saved is not None:
        saved.abandon()
    output = sys.modules.get("steelyard.cli.output")
    try:
        if sys.stderr.isatty():
            sys.stderr.write("\x1b[?25h")  # a progress bar hides the cursor
        if output is not None:
            output.Output("--json" in sys.argv).complain("interrupted")
        else:
            sys.stderr.write("error: interrupted\n")
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(_INTERRUPTED)


def _silence() -> None:
    """Keeps stdout and stderr for Python; the output of compiled code is discarded."""
    import logging
    import threading
    import warnings

    nowhere = os.open(os.devnull, os.O_RDWR)
    sys.stdout = _on_new_descriptor(sys.stdout, 1, nowhere)
    sys.stderr = _on_new_descriptor(sys.stderr, 2, nowhere)
    vars(sys).update(__stdout__=sys.stdout, __stderr__=sys.stderr)  # whose widths are asked for
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    threading.excepthook = lambda _: None
    sys.unraisablehook = lambda _: None


def _on_new_descriptor(stream: TextIO | None, number: int, nowhere: int) -> TextIO:
    """The stream on a new descriptor; its old descriptor discards what is written."""
    if stream is None:  # closed by the caller
        os.dup2(nowhere, number)
        return open(os.devnull, "w", encoding="utf-8")
    descriptor = os.dup(number)
    os.dup2(nowhere, number)
    if number == 2 or os.isatty(descriptor):
        lines = 1
    else:
        lines = -1
    return open(
        descriptor, "w", buffering=lines, encoding=stream.encoding, errors="backslashreplace"
    )


if __name__ == "__main__":
    main()
