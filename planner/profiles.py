"""How long one operation of a phase takes on an option, and what it costs in energy per request in the batch."""

from __future__ import annotations

from collections.abc import Sequence

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


def characterized(profiles: Sequence[Characterized], tokens: ArrayLike) -> tuple[Floats, Floats]:
    """Latency in s and energy in J per request of one operation, for O options at once.

    Tokens are uncached prompt tokens (prefill), verify tokens (target_verify) or the draft length (draft_decode).

    Parameters
    ----------
    profiles
        O profiles.
    tokens
        (S,) token counts.

    Returns
    -------
    latency_s, energy_j
        (O, S); NaN where a latency table does not reach.

    >>> one = Characterized(latency_ms={"floor": 40.0, "per_token": 2.5}, energy_mj={"constant": 760.0})
    >>> [array.tolist() for array in characterized([one], [1, 17])]
    [[[0.04, 0.0425]], [[0.76, 0.76]]]
    """
    n = np.asarray(tokens, dtype=float)[None, :]
    forms = [profile.latency_ms for profile in profiles]
    latency = np.maximum(_column(forms, "floor"), _column(forms, "base", "constant") + _column(forms, "per_token") * n)
    for row, form in enumerate(forms):
        if form.table is not None:
            latency[row] = latency_ms(form, n[0])
    energies = [profile.energy_mj for profile in profiles]
    energy = _column(energies, "base", "constant") + _column(energies, "per_token") * n
    return latency * _MS, energy * _MJ


def _column(forms: Sequence[LatencyForm] | Sequence[EnergyForm], *names: str) -> Floats:
    """(O, 1) the first of the named coefficients that a form has, else zero."""
    values = [next((v for name in names if (v := getattr(form, name)) is not None), 0.0) for form in forms]
    return np.array(values, dtype=float).reshape(-1, 1)
