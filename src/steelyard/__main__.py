"""The command `steelyard`, also as `python -m steelyard`."""

import sys


def main() -> None:
    """Runs the command line; says what to install where its extra is missing."""
    try:
        from steelyard.cli import run
    except ModuleNotFoundError as error:
        if error.name not in ("typer", "rich"):
            raise
        sys.exit("the command line needs typer and rich: pip install 'steelyard[cli]'")
    run()


if __name__ == "__main__":
    main()
