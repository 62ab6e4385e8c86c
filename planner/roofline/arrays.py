"""Types of the vectorised formulas: an argument is a number or an array, a result is an array."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Values = float | Array


def array(values: Values) -> Array:
    """Give a number or an array as an array of float64."""
    return np.asarray(values, dtype=np.float64)
