"""Points in the plane of interactivity (more is better) and energy (less is better): which count, what they span."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]

# Nearer than this, relative, two figures are one: sums in another order differ in the last bits.
ROUNDING = 1e-9


def undominated(columns: Floats) -> Indices:
    """Give the rows that no other row undercuts in every column; of equal rows one.

    Parameters
    ----------
    columns
        (n, k) finite figures of which less is better.
    """
    import moocore  # half of a command's start is not worth the sort that it replaces

    return np.flatnonzero(moocore.is_nondominated(columns)) if len(columns) else np.empty(0, dtype=np.intp)


def front_of(interactivity_tps: Floats, energy: Floats) -> Indices:
    """Give the non-dominated points by rising interactivity, and so by rising energy.

    A point that is no better than another by more than rounding is dominated. Of equal energies the largest
    interactivity is kept.

    >>> front_of(np.array([3.0, 1.0, 2.0, 3.0]), np.array([5.0, 1.0, 6.0, 4.0])).tolist()
    [1, 3]
    """
    order = np.lexsort((energy, -interactivity_tps))
    least, kept = math.inf, []
    for index in order[np.isfinite(energy[order])]:
        if energy[index] < least * (1.0 - ROUNDING):
            least = energy[index]
            kept.append(index)
    rising: list[int] = []
    for index in reversed(kept):
        if not rising or interactivity_tps[index] > interactivity_tps[rising[-1]] * (1.0 + ROUNDING):
            rising.append(int(index))
    return np.array(rising, dtype=np.intp)


def knee_of(interactivity_tps: Floats, energy: Floats) -> int | None:
    """Give the knee of a front: the point farthest below the straight line between its two ends, on logarithmic axes.

    Both axes are scaled to 0–1 between the ends, so that units do not matter; on logarithmic axes equal ratios count
    alike, and the knee of J per token is that of tokens per J. Left of the knee interactivity is cheap, right of it
    dear. Null where no point lies below the line: with fewer than three points, or on a front that bends the other way,
    there is no bargain to point at. After Das (1999), "On characterizing the knee of the Pareto curve".

    >>> knee_of(np.array([10.0, 20.0, 25.0]), np.array([1.0, 1.1, 2.0]))
    1
    >>> knee_of(np.array([10.0, 20.0]), np.array([1.0, 2.0])) is None
    True
    """
    if len(energy) < 3:
        return None
    along, up = np.log(interactivity_tps / interactivity_tps[0]), np.log(energy / energy[0])
    below = along / along[-1] - up / up[-1]
    best = int(np.argmax(below))
    return best if below[best] > ROUNDING else None


def hypervolume_of(interactivity_tps: Floats, energy: Floats, reference: tuple[float, float]) -> float:
    """Area between the points and a reference point, in tok/s × J/token; points beyond the reference count nothing.

    >>> hypervolume_of(np.array([10.0, 20.0]), np.array([1.0, 2.0]), (0.0, 3.0))
    30.0
    """
    import moocore

    points = np.column_stack([interactivity_tps, energy])
    return float(moocore.hypervolume(points, ref=list(reference), maximise=[True, False]))


def reference_energy_of(energy: Floats) -> float:
    """Give the energy of the default reference point: 1.1 times the largest on the front, in two significant digits.

    >>> reference_energy_of(np.array([0.9, 1.1941]))
    1.4
    """
    most = 1.1 * float(energy.max())
    digit = 10.0 ** (math.floor(math.log10(most)) - 1)
    return float(f"{math.ceil(most / digit) * digit:.3g}")
