"""How long one operation of a phase takes on an option, and what it costs in energy per request in the batch."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from planner.schema.catalog import Characterized, EnergyForm, LatencyForm

Floats = NDArray[np.float64]

_MS = 1e-3
_MJ = 1e-3


def latency_ms(curve: LatencyForm, tokens: ArrayLike) -> Floats:
    """Latency of one operation in ms: constant, max(floor, per_token·tokens), base + per_token·tokens, or a table.

    A table is interpolated and never extrapolated: outside its points the value is NaN, the operation not known.

    >>> latency_ms(LatencyForm(floor=40.0, per_token=2.5), [1, 16, 17]).tolist()
    [40.0, 40.0, 42.5]
    >>> latency_ms(LatencyForm(table={1: 5.0, 3: 9.0}), [1, 2, 4]).tolist()
    [5.0, 7.0, nan]
    """
    n = np.asarray(tokens, dtype=float)
    if curve.table is not None:
        points = sorted(curve.table)
        values = [curve.table[point] for point in points]
        return np.asarray(np.interp(n, points, values, left=np.nan, right=np.nan))
    if curve.constant is not None:
        return np.full_like(n, curve.constant)
    return np.maximum(curve.floor or 0.0, (curve.base or 0.0) + (curve.per_token or 0.0) * n)


def energy_mj(curve: EnergyForm, tokens: ArrayLike) -> Floats:
    """Energy of one operation in mJ per request in the batch: constant or base + per_token·tokens.

    >>> energy_mj(EnergyForm(base=720.0, per_token=40.0), [1, 11]).tolist()
    [760.0, 1160.0]
    """
    n = np.asarray(tokens, dtype=float)
    if curve.constant is not None:
        return np.full_like(n, curve.constant)
    return (curve.base or 0.0) + (curve.per_token or 0.0) * n


def characterized(profile: Characterized, tokens: ArrayLike) -> tuple[Floats, Floats]:
    """Latency in s and energy in J per request of one operation, in the shape of ``tokens``.

    Tokens are uncached prompt tokens (prefill), verify tokens (target_verify) or the draft length (draft_decode).
    """
    return latency_ms(profile.latency_ms, tokens) * _MS, energy_mj(profile.energy_mj, tokens) * _MJ
