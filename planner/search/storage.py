"""Where a study is kept: in memory, a journal file, SQLite, PostgreSQL or MySQL; and what is done while it is away."""

from __future__ import annotations

import json
import sqlite3
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from json import JSONDecodeError
from pathlib import Path
from threading import Event, local
from typing import Any, TypeVar

import optuna
from optuna.exceptions import ExperimentalWarning, StorageInternalError, UpdateFinishedTrialError
from optuna.storages import BaseStorage, InMemoryStorage, JournalStorage, RDBStorage, RetryHeartbeatStaleTrialCallback
from optuna.storages.journal import JournalFileBackend
from sqlalchemy import event
from sqlalchemy.exc import (
    ArgumentError,
    DataError,
    DBAPIError,
    IntegrityError,
    NoSuchModuleError,
    NotSupportedError,
    PendingRollbackError,
    ProgrammingError,
    SQLAlchemyError,
)

from planner.errors import InputError, without_password

Result = TypeVar("Result")

JOURNAL = "journal:"
FORMS = "write sqlite:///FILE, journal:FILE, postgresql://USER@HOST/DATABASE or mysql://USER@HOST/DATABASE"
# The drivers that the extra ``storage`` installs, where a URL names none.
_DRIVERS = {"postgresql": "postgresql+psycopg", "postgres": "postgresql+psycopg", "mysql": "mysql+pymysql"}

# A database that restarts is waited for this long; a trial of a worker that was heard of no more is tried again.
PATIENCE_S = 180.0
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.2, 5.0
_OPENINGS = 3
_RETRIES = 3
_LONGEST_LINE = 1_000_000


def opened(url: str | None, heartbeat_s: int) -> BaseStorage:
    """Open a storage by its URL; null: in memory.

    Raises
    ------
    InputError
        If there is no such kind of storage, its driver is not installed, or it cannot be reached.
    """
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    if url is None:
        return InMemoryStorage()
    if url.startswith(JOURNAL):
        return _journal(url)
    kind, separator, rest = url.partition("://")
    if not separator:
        raise InputError(f"--storage {url}: this is no storage; {FORMS}")
    if kind.startswith("sqlite") and rest.strip("/") in ("", ":memory:"):
        raise InputError(f"--storage {url}: this names no file; {FORMS}, or leave it out to keep nothing")
    for attempt in range(_OPENINGS):
        try:
            with quiet():
                storage = Patient(
                    f"{_DRIVERS.get(kind, kind)}://{rest}",
                    engine_kwargs={"pool_pre_ping": True},
                    heartbeat_interval=heartbeat_s,
                    grace_period=3 * heartbeat_s,
                    heartbeat_stale_trial_callback=RetryHeartbeatStaleTrialCallback(max_retry=_RETRIES),
                )
            return _one_at_a_time(storage) if storage.engine.dialect.name == "sqlite" else storage
        except (NoSuchModuleError, ArgumentError, ValueError) as error:
            raise InputError(f"--storage {without_password(url)}: this is no storage; {FORMS}") from error
        except ImportError as error:
            text = f"--storage {without_password(url)}: its driver is not installed: pip install 'phaseplan[storage]'"
            raise InputError(text) from error
        except (SQLAlchemyError, StorageInternalError) as error:  # another process may be making the tables
            if attempt == _OPENINGS - 1:
                raise InputError(
                    f"--storage {without_password(url)}: cannot be opened: {_first_line(error)}"
                ) from error
            time.sleep(1.0)
    raise AssertionError("unreachable")


def _journal(url: str) -> BaseStorage:
    with usable(url):
        _require_a_journal(Path(url.removeprefix(JOURNAL)))
        return JournalStorage(JournalFileBackend(url.removeprefix(JOURNAL)))


def _require_a_journal(path: Path) -> None:
    """Look at a file before anything is added to it.

    Raises
    ------
    JSONDecodeError
        If it holds something else than the lines of a journal.
    """
    if path.exists():
        with path.open("rb") as journal:
            first = journal.readline(_LONGEST_LINE)
        if first and "op_code" not in (json.loads(first.decode(errors="replace")) or ()):
            raise JSONDecodeError("no operation", "", 0)


@contextmanager
def usable(url: str | None) -> Iterator[None]:
    """Tell of a storage that cannot be read or written as of bad input, whatever its kind raises.

    Raises
    ------
    InputError
        Naming the storage and what it said.
    """
    try:
        yield
    except JSONDecodeError as error:
        raise InputError(f"--storage {without_password(url or '')}: this is no journal of a study") from error
    except OSError as error:
        raise InputError(
            f"--storage {without_password(url or '')}: cannot be used: {error.strerror or error}"
        ) from error
    except (SQLAlchemyError, StorageInternalError) as error:
        raise InputError(f"--storage {without_password(url or '')}: cannot be used: {_first_line(error)}") from error


def _one_at_a_time(storage: Patient) -> Patient:
    """Let SQLite lock its file when a transaction begins: it locks no rows, and two workers would take one trial."""

    def connected(connection: Any, _: Any) -> None:  # noqa: ANN401
        connection.isolation_level = None  # the driver begins nothing by itself

    event.listen(storage.engine, "connect", connected)
    event.listen(storage.engine, "begin", lambda connection: connection.exec_driver_sql("BEGIN IMMEDIATE"))
    storage.engine.dispose()  # connections from before know nothing of it
    return storage


def _first_line(error: BaseException) -> str:
    cause = error.__cause__ or error
    reason = getattr(cause, "orig", None) or cause
    return str(reason).strip().splitlines()[0] if str(reason).strip() else type(reason).__name__


@contextmanager
def quiet() -> Iterator[None]:
    """Leave out Optuna's notes on what it calls experimental: heartbeats, metric names, spaces with conditions."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ExperimentalWarning)
        yield


_inside = local()
# Set where nobody waits for a database any more.
GIVEN_UP = Event()


def _patiently(method: Callable[..., Result]) -> Callable[..., Result]:
    """Call a method again while the database is away; calls within it are part of it and are not repeated alone."""

    @wraps(method)
    def call(*arguments: Any, **named: Any) -> Result:  # noqa: ANN401
        if getattr(_inside, "call", False):
            return method(*arguments, **named)
        until, pause, again = time.monotonic() + PATIENCE_S, _FIRST_PAUSE_S, False
        while True:
            _inside.call = True
            try:
                return method(*arguments, **named)
            except UpdateFinishedTrialError:
                if not again:
                    raise
                return True  # type: ignore[return-value]  # it was written; only the answer got lost
            except (StorageInternalError, SQLAlchemyError) as error:
                if not _is_away(error) or time.monotonic() > until or GIVEN_UP.is_set():
                    raise
            finally:
                _inside.call = False
            GIVEN_UP.wait(pause)
            pause, again = min(2.0 * pause, _LONGEST_PAUSE_S), True

    return call


def _is_away(error: BaseException) -> bool:
    """Whether the database did not answer, rather than refuse."""
    cause = error.__cause__ if isinstance(error, StorageInternalError) else error
    refused = (DataError, IntegrityError, NotSupportedError, ProgrammingError)
    if isinstance(cause, DBAPIError) and isinstance(cause.orig, sqlite3.Error):
        return "locked" in str(cause.orig) or "busy" in str(cause.orig)  # a file is never away
    return isinstance(cause, PendingRollbackError) or (isinstance(cause, DBAPIError) and not isinstance(cause, refused))


class Patient(RDBStorage):
    """A database that may restart: what is asked of it meanwhile is asked again until it answers."""


for _name in (
    *(name for name in dir(BaseStorage) if name.startswith(("create_", "delete_", "set_", "get_"))),
    *("_create_new_trial", "_get_trials", "_set_trial_param", "record_heartbeat", "_get_stale_trial_ids"),
):
    if callable(getattr(RDBStorage, _name, None)):
        setattr(Patient, _name, _patiently(getattr(RDBStorage, _name)))
