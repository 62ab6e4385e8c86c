"""The expected speed-ups printed by Leviathan, Kalman and Matias 2023 (arXiv 2211.17192) follow from geometric and c.

Tables 2 and 4 print alpha and c with two decimals and the expected speed-up with one. Within that rounding the
formula of theorem 3.8 must give what is printed, and so must a whole design evaluated by the planner.
"""

import pytest

from planner.acceptance import expected_speedup, geometric
from planner.evaluate import Design, request_metrics
from planner.options import PLAIN, Option, Speculation
from planner.schema.catalog import Catalog
from planner.schema.scenario import Scenario
from planner.words import DRAFT_PHASES, PHASES

# arXiv 2211.17192, tables 2 and 4: T5-XXL 11B on TPU v4 at batch size 1. (draft, task, temperature, gamma, alpha, c,
# expected speed-up).
T5_XXL = [
    ("T5-small", "EnDe", 0, 7, 0.75, 0.02, 3.2),
    ("T5-base", "EnDe", 0, 7, 0.80, 0.04, 3.3),
    ("T5-large", "EnDe", 0, 7, 0.82, 0.11, 2.5),
    ("T5-small", "EnDe", 1, 7, 0.62, 0.02, 2.3),
    ("T5-base", "EnDe", 1, 5, 0.68, 0.04, 2.4),
    ("T5-large", "EnDe", 1, 3, 0.71, 0.11, 2.0),
    ("T5-small", "CNN/DM", 0, 5, 0.65, 0.02, 2.4),
    ("T5-base", "CNN/DM", 0, 5, 0.73, 0.04, 2.6),
    ("T5-large", "CNN/DM", 0, 3, 0.74, 0.11, 2.0),
    ("T5-small", "CNN/DM", 1, 5, 0.53, 0.02, 1.9),
    ("T5-base", "CNN/DM", 1, 3, 0.55, 0.04, 1.8),
    ("T5-large", "CNN/DM", 1, 3, 0.56, 0.11, 1.6),
]
# arXiv 2211.17192, table 1: speed-up at c = 0, which is E itself. (gamma, alpha, speed-up)
FREE_DRAFTS = [(2, 0.6, 1.96), (3, 0.7, 2.53), (2, 0.8, 2.44), (5, 0.8, 3.69), (2, 0.9, 2.71), (10, 0.9, 6.86)]
# arXiv 2211.17192, lenience table of the appendix: T5-small, EnDe, temperature 0, gamma 8, c 0.015. (alpha, speed-up)
LENIENCE = [(0.75, 3.3), (0.75, 3.3), (0.80, 3.9), (0.87, 4.9)]

HALF = 0.005  # half of the last digit of alpha and c


def reaches(least, most, printed, half):
    """Whether an interval of what the formula gives meets the interval that rounds to what is printed."""
    return least <= printed + half and most >= printed - half


def by_formula(alpha, gamma, c):
    return expected_speedup(alpha, gamma, c)


def by_planner(alpha, gamma, c):
    """Interactivity of a design with a draft that costs c target runs, over that of plain decode."""
    scenario = one_device(alpha, c)
    return interactivity(scenario, gamma) / interactivity(scenario, 0)


def one_device(alpha, c):
    run = {"latency_ms": 100.0, "energy_mj": 1.0}
    drafted = {"latency_ms": {"per_token": 100.0 * c}, "energy_mj": 1.0}
    phases = {"target_prefill": run, "target_verify": run, "draft_prefill": run, "draft_decode": drafted}
    profiles = {phase: {"b1": profile} for phase, profile in phases.items()}
    catalog = {
        "schema_version": 1,
        "devices": {
            "tpu": {
                "profiles": {
                    "t5-xxl": {phase: profiles[phase] for phase in PHASES if phase not in DRAFT_PHASES},
                    "t5": {phase: profiles[phase] for phase in DRAFT_PHASES},
                }
            }
        },
        "models": {"t5-xxl": {}, "t5": {}},
        "proposers": {
            "t5": {
                "kind": "draft_model",
                "model": "t5",
                "acceptance": {"t5-xxl": {"general": {"kind": "geometric", "alpha": alpha}}},
            }
        },
    }
    return Scenario(
        schema_version=1,
        name="leviathan",
        catalog=Catalog.model_validate(catalog),
        target="t5-xxl",
        proposers=("t5",),
        workloads={"any": {"isl_tokens": 100, "osl_tokens": 100}},
    )


def interactivity(scenario, gamma):
    speculation = Speculation("t5", gamma) if gamma else PLAIN
    runs = {phase: Option("tpu", 1, 1) if gamma or phase not in DRAFT_PHASES else None for phase in PHASES}
    return request_metrics(scenario, Design("any", speculation, runs)).interactivity_tps


@pytest.mark.parametrize("speedup", [by_formula, by_planner])
@pytest.mark.parametrize(("draft", "task", "temperature", "gamma", "alpha", "c", "printed"), T5_XXL)
def test_expected_speedup_is_as_printed(speedup, draft, task, temperature, gamma, alpha, c, printed):
    least = speedup(alpha - HALF, gamma, c + HALF)
    most = speedup(alpha + HALF, gamma, c - HALF)
    assert reaches(least, most, printed, 0.05), f"{draft} {task} T={temperature}: {least:.3f} to {most:.3f}"


@pytest.mark.parametrize(("gamma", "alpha", "printed"), FREE_DRAFTS)
def test_free_drafts_speed_up_by_tokens_per_step(gamma, alpha, printed):
    assert expected_speedup(alpha, gamma, 0.0) == float(geometric(gamma, alpha)) == pytest.approx(printed, abs=0.005)


@pytest.mark.parametrize(("alpha", "printed"), LENIENCE)
def test_lenience_speeds_up_as_printed(alpha, printed):
    least = expected_speedup(alpha - HALF, 8, 0.015 + HALF / 10)
    most = expected_speedup(alpha + HALF, 8, 0.015 - HALF / 10)
    assert reaches(least, most, printed, 0.05)


def test_the_rounding_is_narrow_enough_to_tell_formulas_apart():
    """Without the bonus token, or with a free draft, most of the printed speed-ups are missed."""
    no_bonus, free = 0, 0
    for *_, gamma, alpha, c, printed in T5_XXL:
        least, most = (expected_speedup(alpha + sign * HALF, gamma, c - sign * HALF) for sign in (-1, 1))
        runs = gamma * c + 1
        no_bonus += reaches(least - 1 / runs, most - 1 / runs, printed, 0.05)
        free += reaches(least * runs, most * runs, printed, 0.05)
    assert no_bonus == 0
    assert free <= 2
