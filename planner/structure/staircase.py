"""The cheapest prefill within a time, as a step function."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]


@dataclass(frozen=True)
class Staircase:
    """Steps of a falling function: from ``time_s[i]`` on, ``value[i]`` is the least, reached by ``choice[i]``."""

    time_s: Floats
    value: Floats
    choice: Indices

    def at(self, allowed_s: Floats) -> tuple[Floats, Indices]:
        """Give the least value within an allowed time, and who reaches it; infinite where nothing is that fast."""
        index = np.searchsorted(self.time_s, allowed_s, side="right") - 1
        if not self.value.size:
            return np.full(np.shape(allowed_s), np.inf), np.full(np.shape(allowed_s), -1)
        return np.where(index >= 0, self.value[index], np.inf), np.where(index >= 0, self.choice[index], -1)

    @property
    def least(self) -> float:
        """Least value of all; infinite where there is none."""
        return float(self.value[-1]) if self.value.size else np.inf


FREE = Staircase(np.zeros(1), np.zeros(1), np.full(1, -1, dtype=np.intp))
"""Nothing to do: no time, no cost."""


def staircase(time_s: Floats, value: Floats) -> Staircase:
    """Keep the points that no faster point undercuts.

    Proof: a point that costs no less than one that is at least as fast is never the only best choice within any time.

    >>> steps = staircase(np.array([3.0, 1.0, 2.0]), np.array([5.0, 9.0, 9.0]))
    >>> steps.time_s.tolist(), steps.value.tolist(), steps.choice.tolist()
    ([1.0, 3.0], [9.0, 5.0], [1, 0])
    """
    finite = np.flatnonzero(np.isfinite(value) & np.isfinite(time_s))
    order = finite[np.lexsort((value[finite], time_s[finite]))]
    best = np.minimum.accumulate(value[order]) if order.size else np.empty(0)
    kept = np.ones(order.size, dtype=bool)
    kept[1:] = best[1:] < best[:-1]
    return Staircase(time_s[order][kept], value[order][kept], order[kept])


def both(first: Staircase, second: Staircase) -> tuple[Staircase, Indices]:
    """Combine two prefills whose times add: the staircase of sums, and the pair of choices of each point.

    Returns
    -------
    steps, pairs
        ``steps.choice`` points into ``pairs``, (n, 2) choices of the first and the second.
    """
    times = (first.time_s[:, None] + second.time_s[None, :]).ravel()
    values = (first.value[:, None] + second.value[None, :]).ravel()
    pairs = np.stack(np.meshgrid(first.choice, second.choice, indexing="ij"), axis=-1).reshape(-1, 2)
    return staircase(times, values), pairs
