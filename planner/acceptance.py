"""Mean tokens committed per step, E(D), for the acceptance curves that a catalog can hold."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from planner.schema.catalog import (
    AcceptanceCurve,
    AcceptanceTable,
    Geometric,
    Positions,
    Ranks,
    SaturatingExponential,
)
from planner.schema.scenario import LossyAcceptance

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


def ranks(draft_length: ArrayLike, probabilities: ArrayLike, branching: ArrayLike) -> Floats:
    """E(D) of a token tree: a level whose nodes have b children is passed with the sum of the first b chances by rank.

    Children beyond the last known rank are taken to be of no use. Source: the positional acceptance assumption of Chen
    et al. 2024 (Sequoia), arXiv 2402.12374, section 3.

    Raises
    ------
    IndexError
        If a draft length exceeds the number of levels.

    >>> ranks([0, 1, 2], [0.6, 0.2], [2, 1]).round(3).tolist()
    [1.0, 1.8, 2.28]
    """
    return positions(draft_length, _passed(probabilities, branching))


def _passed(probabilities: ArrayLike, branching: ArrayLike) -> Floats:
    """(levels,) the chance that one of a node's children is accepted."""
    sums = np.minimum(np.cumsum(np.asarray(probabilities, dtype=float)), 1.0)
    return np.asarray(sums[np.minimum(np.asarray(branching, dtype=int), len(sums)) - 1])


def lenient(chance: ArrayLike, lossy: LossyAcceptance) -> Floats:
    """Chance of accepting a position under lenience l: min(1 − (1 − p)·l^k, p/l), where p is the lossless chance.

    Leviathan et al. 2023 (arXiv 2211.17192, appendix A.5) accept a draft token x where l·q(x) ≤ p(x) in place of
    q(x) ≤ p(x); so no chance grows by more than 1/l. That the rejections fall as a power of l is how the figures of
    their table for l = 1, 0.5, 0.3, 0.1 (recalled) fall, with an exponent of about 0.4 for T5-small and 0.5 for
    T5-base; the exponent is the scenario's to state. What is put out then no longer follows the target's distribution.

    >>> lenient([0.6, 1.0], LossyAcceptance(lenience=0.25, rejection_exponent=0.5)).round(3).tolist()
    [0.8, 1.0]
    """
    p = np.asarray(chance, dtype=float)
    fewer_rejected = 1.0 - (1.0 - p) * lossy.lenience**lossy.rejection_exponent
    return np.asarray(np.minimum(np.minimum(fewer_rejected, p / lossy.lenience), 1.0))


def constant_chance(draft_length: ArrayLike, tokens: ArrayLike) -> Floats:
    """Give the chance per position, the same at all, that commits as many tokens: the inverse of ``geometric`` in α.

    Found by bisection to the last bit that counts. At draft length 0 it is 0.

    >>> constant_chance([1, 4, 0], [1.7, 2.7731, 1.0]).round(4).tolist()
    [0.7, 0.7, 0.0]
    """
    D, E = np.broadcast_arrays(np.asarray(draft_length, dtype=float), np.asarray(tokens, dtype=float))
    powers = np.arange(1.0, D.max(initial=0.0) + 1.0)
    low, high = np.zeros(D.shape), np.ones(D.shape)
    for _ in range(54):
        middle = (low + high) / 2.0
        reached = 1.0 + np.where(powers <= D[..., None], middle[..., None] ** powers, 0.0).sum(axis=-1)
        low, high = np.where(reached < E, middle, low), np.where(reached < E, high, middle)
    return np.where(D > 0, (low + high) / 2.0, 0.0)


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


def tokens_per_step(
    curve: AcceptanceCurve,
    draft_length: ArrayLike,
    branching: tuple[int, ...] = (),
    lossy: LossyAcceptance | None = None,
) -> Floats:
    """E(D) of a catalog's curve; 1 ≤ E ≤ D+1 and E(0) = 1 for every curve.

    Under lenience each position's chance changes (``lenient``); a curve that states no chances is taken to have the
    same one at every position (``constant_chance``).

    Parameters
    ----------
    curve
        The curve.
    draft_length
        One or many draft lengths, any shape.
    branching
        Children of each node by level, for a curve of kind ranks.
    lossy
        Lenience, where the scenario opts in.

    Returns
    -------
    Floats
        Tokens committed per step, bonus token included, in the shape of ``draft_length``.

    Raises
    ------
    IndexError
        If a draft length lies beyond what the curve covers.
    """
    if lossy is not None and lossy.lenience < 1.0:
        return _lossy(curve, draft_length, branching, lossy)
    if isinstance(curve, SaturatingExponential):
        return saturating_exponential(draft_length, curve.A, curve.tau, curve.offset)
    if isinstance(curve, Geometric):
        return geometric(draft_length, curve.alpha)
    if isinstance(curve, Positions):
        return positions(draft_length, curve.probabilities)
    if isinstance(curve, Ranks):
        return ranks(draft_length, curve.probabilities, branching)
    return table(draft_length, curve.tokens_per_step)


def _lossy(
    curve: AcceptanceCurve, draft_length: ArrayLike, branching: tuple[int, ...], lossy: LossyAcceptance
) -> Floats:
    if isinstance(curve, Positions):
        return positions(draft_length, lenient(curve.probabilities, lossy))
    if isinstance(curve, Ranks):
        return positions(draft_length, lenient(_passed(curve.probabilities, branching), lossy))
    D = np.asarray(draft_length, dtype=float)
    chance = lenient(constant_chance(D, tokens_per_step(curve, D)), lossy)
    powers = np.arange(1.0, D.max(initial=0.0) + 1.0)
    return np.asarray(1.0 + np.where(powers <= D[..., None], chance[..., None] ** powers, 0.0).sum(axis=-1))


def expected_speedup(alpha: float, gamma: int, c: float) -> float:
    """Compute the expected wall-time improvement (1 − alpha^(gamma+1)) / ((1 − alpha)·(gamma·c + 1)).

    ``c`` is the ratio of one draft run to one target run. Source: arXiv 2211.17192, theorem 3.8.

    >>> round(expected_speedup(alpha=0.75, gamma=7, c=0.02), 2)
    3.16
    """
    return float(geometric(gamma, alpha)) / (gamma * c + 1.0)
