"""Cost a grid of options: 60 device types × 4 degrees × 8 batches × 33 draft lengths × 2 phases.

Run ``python -m pytest tests/benchmarks/bench_roofline.py -s``; the answer is asserted, the time is printed.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from hardware_examples import catalog, shape_of

from planner.errors import InputError
from planner.roofline import Hardware, draft_decode, hardware, stack, verify

DEGREES, BATCHES, LENGTHS = np.array([1.0, 2, 4, 8]), 2.0 ** np.arange(8), np.arange(33.0)


def _devices(count: int) -> list[Hardware]:
    found = []
    for device in catalog().devices.values():
        try:
            found.append(hardware(device, "fp8"))
        except InputError:
            continue
    return [found[i % len(found)] for i in range(count)]


def cost_grid(hw: Hardware) -> tuple[np.ndarray, np.ndarray]:
    """Latency [s] of verify and draft, of shape (devices, degrees, batches, draft lengths)."""
    degree, batch = DEGREES.reshape(1, 4, 1, 1), BATCHES.reshape(8, 1)
    check = verify(hw, shape_of("llama-3.1-70b"), "fp8", batch, 2048, degree, LENGTHS + 1)
    draft = draft_decode(hw, shape_of("llama-3.2-1b"), "fp8", LENGTHS, batch, 2048, degree)
    return check.latency_s, draft.latency_s


def test_grid() -> None:
    singles = _devices(60)
    hw = stack(singles).reshape(60, 1, 1, 1)
    times = []
    for _ in range(7):
        start = time.perf_counter()
        check, draft = cost_grid(hw)
        times.append(time.perf_counter() - start)
    assert check.shape == draft.shape == (60, 4, 8, 33)
    for d, g, b, n in ((0, 0, 0, 0), (17, 2, 5, 7), (59, 3, 7, 32)):
        one = verify(singles[d], shape_of("llama-3.1-70b"), "fp8", BATCHES[b], 2048, DEGREES[g], LENGTHS[n] + 1)
        assert check[d, g, b, n] == pytest.approx(float(one.latency_s), rel=1e-12)
    print(f"\n{2 * check.size} costs: median {1e3 * float(np.median(times)):.1f} ms, best {1e3 * min(times):.1f} ms")
