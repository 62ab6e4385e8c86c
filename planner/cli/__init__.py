"""The command ``plan``: it only parses and prints."""

from __future__ import annotations

import errno
import os
import signal
import sys
from types import FrameType
from typing import NoReturn

EXIT_BAD_INPUT = 2
EXIT_INFEASIBLE = 3
EXIT_NO_INCUMBENT = 4
EXIT_INTERRUPTED = 130
# By the status of an answer; every other one is 0.
EXITS = {"infeasible": EXIT_INFEASIBLE, "no_incumbent": EXIT_NO_INCUMBENT}


def main() -> NoReturn:
    """Run the command and end the process with its exit code."""
    signal.signal(signal.SIGTERM, _terminated)
    try:
        code = run(sys.argv[1:])
    except _Terminated:
        code = 128 + signal.SIGTERM
    if code >= EXIT_INTERRUPTED:  # the solver's thread may still be at work: do not take its memory away while it is
        sys.stderr.flush()
        os._exit(code)
    sys.exit(code)


class _Terminated(BaseException):
    """The process was asked to end."""


def _terminated(_number: int, _frame: FrameType | None) -> NoReturn:
    raise _Terminated


def run(arguments: list[str]) -> int:
    """Run the command with arguments and give its exit code; every error that a person can mend is one message."""
    import click

    from planner.cli.app import plan
    from planner.cli.mistakes import tell
    from planner.errors import InputError

    if sys.stdout is None:
        click.echo("error: the answer cannot be written: standard output is closed", err=True)
        return EXIT_BAD_INPUT
    try:
        code = plan.main(arguments, prog_name="plan", standalone_mode=False, obj=tuple(arguments))
        sys.stdout.flush()
    except InputError as error:
        for problem in error.problems:
            click.echo(f"error: {problem}", err=True)
        return EXIT_BAD_INPUT
    except click.ClickException as error:
        tell(error)
        return EXIT_BAD_INPUT
    except (KeyboardInterrupt, click.Abort):
        click.echo("interrupted", err=True)
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        return _reader_gone()
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EIO, errno.EBADF):
            raise
        click.echo(f"error: the answer cannot be written: {error.strerror}", err=True)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return EXIT_BAD_INPUT
    return code if isinstance(code, int) else 0


def _reader_gone() -> int:
    """End quietly when whoever reads the output has had enough, as in ``plan ... | head``."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 128 + signal.SIGPIPE
