"""Mean tokens committed per step, E(D), for the acceptance curves that a catalog can hold."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from planner.schema.catalog import (
    AcceptanceCurve,
    AcceptanceTable,
    Geometric,
    Positions,
    SaturatingExponential,
)

Floats = NDArray[np.float64]


def saturating_exponential(draft_length: ArrayLike, A: float, tau: float, offset: float = 0.0) -> Floats:
    """E(D) = clip(offset + A·(1 − e^(−D/tau)), 1, D+1); E(0) = 1.

    With offset 1 the family fits published curves with a median worst error of about 1 %.

    >>> float(saturating_exponential(15, A=10.25, tau=8.4).round(3))
    8.531
    >>> saturating_exponential([0, 1], A=100.0, tau=1.0).tolist()
    [1.0, 2.0]
    """
    D = np.asarray(draft_length, dtype=float)
    return np.clip(offset - A * np.expm1(-D / tau), 1.0, D + 1.0)


def geometric(draft_length: ArrayLike, alpha: float) -> Floats:
    """E(D) = (1 − alpha^(D+1)) / (1 − alpha), and D+1 at alpha = 1.

    Source: Leviathan, Kalman and Matias 2023, arXiv 2211.17192, equation 1.

    >>> float(geometric(4, alpha=0.7).round(3)), float(geometric(4, alpha=1.0))
    (2.773, 5.0)
    """
    D = np.asarray(draft_length, dtype=float)
    if alpha == 1.0:
        return D + 1.0
    if alpha == 0.0:
        return np.ones_like(D)
    # expm1 and log1p keep the quotient exact where alpha is next to 1.
    log_alpha = np.log(alpha)
    return np.asarray(np.clip(np.expm1((D + 1.0) * log_alpha) / np.expm1(log_alpha), 1.0, D + 1.0))


def positions(draft_length: ArrayLike, probabilities: ArrayLike) -> Floats:
    """E(D) = 1 + Σ_{k≤D} Π_{i≤k} p_i, where p_i is the chance that position i is accepted given the earlier ones were.

    Raises
    ------
    IndexError
        If a draft length exceeds the number of positions.

    >>> positions([0, 1, 2], [0.8, 0.5]).round(3).tolist()
    [1.0, 1.8, 2.2]
    """
    committed = np.concatenate([[1.0], 1.0 + np.cumsum(np.cumprod(np.asarray(probabilities, dtype=float)))])
    return np.asarray(committed[np.asarray(draft_length, dtype=int)])


def table(draft_length: ArrayLike, tokens_per_step: dict[int, float]) -> Floats:
    """E(D) by linear interpolation between measured points, from E(0) = 1.

    Raises
    ------
    IndexError
        If a draft length lies beyond the last measured point.

    >>> table([0, 1, 2, 4], {2: 2.4, 4: 3.0}).round(3).tolist()
    [1.0, 1.7, 2.4, 3.0]
    """
    D = np.asarray(draft_length, dtype=float)
    points = {0: 1.0} | tokens_per_step
    lengths = sorted(points)
    if np.any(lengths[-1] < D):
        raise IndexError(f"draft length {D.max():g} lies beyond the last measured point {lengths[-1]}")
    return np.asarray(np.interp(D, lengths, [points[length] for length in lengths]))


def covered_draft_length(curve: AcceptanceCurve) -> int | None:
    """Give the longest draft that a curve covers, null if it has no end.

    A table that falls with D is measured reality: it is covered up to its maximum, the last of equal ones (see
    ``falls``).
    """
    if isinstance(curve, Positions):
        return len(curve.probabilities)
    if isinstance(curve, AcceptanceTable):
        best = max(curve.tokens_per_step.values())
        return max(length for length, value in curve.tokens_per_step.items() if value == best)
    return None


def falls(curve: AcceptanceCurve) -> bool:
    """Whether a measured table falls with D after its maximum."""
    return isinstance(curve, AcceptanceTable) and covered_draft_length(curve) != max(curve.tokens_per_step)


def tokens_per_step(curve: AcceptanceCurve, draft_length: ArrayLike) -> Floats:
    """E(D) of a catalog's curve; 1 ≤ E ≤ D+1 and E(0) = 1 for every curve.

    Parameters
    ----------
    curve
        The curve.
    draft_length
        One or many draft lengths, any shape.

    Returns
    -------
    Floats
        Tokens committed per step, bonus token included, in the shape of ``draft_length``.

    Raises
    ------
    IndexError
        If a draft length lies beyond what the curve covers.
    """
    if isinstance(curve, SaturatingExponential):
        return saturating_exponential(draft_length, curve.A, curve.tau, curve.offset)
    if isinstance(curve, Geometric):
        return geometric(draft_length, curve.alpha)
    if isinstance(curve, Positions):
        return positions(draft_length, curve.probabilities)
    return table(draft_length, curve.tokens_per_step)


def expected_speedup(alpha: float, gamma: int, c: float) -> float:
    """Compute the expected wall-time improvement (1 − alpha^(gamma+1)) / ((1 − alpha)·(gamma·c + 1)).

    ``c`` is the ratio of one draft run to one target run. Source: arXiv 2211.17192, theorem 3.8.

    >>> round(expected_speedup(alpha=0.75, gamma=7, c=0.02), 2)
    3.16
    """
    return float(geometric(gamma, alpha)) / (gamma * c + 1.0)
