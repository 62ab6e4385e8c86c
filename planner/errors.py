"""Errors that a person can mend; everything else is a fault of the program."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable


class PlannerError(Exception):
    """Base of the errors that the command line turns into a message and an exit code."""


class InputError(PlannerError):
    """Bad input: a file, a flag or a combination of them.

    Parameters
    ----------
    *problems
        One line per problem; all problems of a file are reported at once.
    """

    def __init__(self, *problems: str) -> None:
        self.problems = problems
        super().__init__("\n".join(problems))


class CheckError(PlannerError):
    """A plan contradicts its own scenario: the planner is wrong, and says so instead of printing the plan."""


def nearest(name: str, choices: Iterable[str], most: int = 3) -> str:
    """Give the valid names nearest to a wrong one as a phrase for a message.

    >>> nearest("gpuu", ["gpu", "accelerator"])
    'nearest: gpu'
    >>> nearest("zzz", ["gpu", "accelerator"])
    'valid: accelerator, gpu'
    >>> nearest("x", [])
    'none is defined'
    """
    names = sorted(set(choices))
    if not names:
        return "none is defined"
    close = difflib.get_close_matches(name, names, n=most, cutoff=0.5)
    if close:
        return "nearest: " + ", ".join(close)
    shown = ", ".join(names[:12])
    return f"valid: {shown}" + (f" and {len(names) - 12} more" if len(names) > 12 else "")


_PASSWORDS = (
    (re.compile(r"(://[^:/@\s]+):[^@\s]*@"), r"\1@"),
    (re.compile(r"(?i)([?&](?:password|passwd|pwd)=)[^&\s'\"]*"), r"\1…"),
)


def without_password(text: str) -> str:
    """Leave the passwords of URLs out of a text.

    >>> without_password("mysql://me:secret@host/studies"), without_password("postgresql://host/s?password=secret")
    ('mysql://me@host/studies', 'postgresql://host/s?password=…')
    """
    for pattern, kept in _PASSWORDS:
        text = pattern.sub(kept, text)
    return text
