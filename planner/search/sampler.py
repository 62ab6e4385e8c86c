"""Which values a trial takes: an Optuna sampler whose random numbers follow from the seed and the trial's number."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from optuna.distributions import BaseDistribution
from optuna.samplers import BaseSampler, NSGAIISampler, RandomSampler, TPESampler
from optuna.study import Study
from optuna.trial import FrozenTrial, Trial, TrialState

from planner.schema.scenario import Scalar
from planner.search.space import Parameter
from planner.search.storage import quiet
from planner.words import SamplerName

_STARTUP = 24


class Seeded(BaseSampler):
    """A sampler made anew for every trial, seeded by the study's seed and the trial's number.

    So a study that is resumed goes on as if it had not been interrupted, and workers never repeat each other.
    """

    def __init__(self, name: SamplerName, seed: int) -> None:
        self.name, self.seed = name, seed
        self._number, self._inner = -1, _sampler(name, 0)

    def _of(self, trial: FrozenTrial) -> BaseSampler:
        if trial.number != self._number:
            self._number, self._inner = (
                trial.number,
                _sampler(self.name, (self.seed * 1_000_003 + trial.number) % 2**32),
            )
        return self._inner

    def before_trial(self, study: Study, trial: FrozenTrial) -> None:
        """Prepare for a trial."""
        self._of(trial).before_trial(study, trial)

    def infer_relative_search_space(self, study: Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        """Name the parameters that are sampled together."""
        return self._of(trial).infer_relative_search_space(study, trial)

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """Sample parameters together."""
        return self._of(trial).sample_relative(study, trial, search_space)

    def sample_independent(
        self, study: Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:  # noqa: ANN401
        """Sample a parameter by itself."""
        return self._of(trial).sample_independent(study, trial, param_name, param_distribution)

    def after_trial(self, study: Study, trial: FrozenTrial, state: TrialState, values: Sequence[float] | None) -> None:
        """Take note of a trial's end."""
        self._of(trial).after_trial(study, trial, state, values)


def _sampler(name: SamplerName, seed: int) -> BaseSampler:
    if name == "tpe":
        with quiet():
            return TPESampler(n_startup_trials=_STARTUP, multivariate=True, group=True, seed=seed)
    if name == "nsga2":
        return NSGAIISampler(population_size=_STARTUP, seed=seed)
    return RandomSampler(seed=seed)


def suggest(trial: Trial, parameters: Sequence[Parameter]) -> dict[str, Scalar | None]:
    """Let a trial take its values; those that other values make irrelevant are left out."""
    values: dict[str, Scalar | None] = {}
    for one in parameters:
        if one.given is None or values.get(one.given[0]) == one.given[1]:
            values[one.name] = _taken(trial, one)
    return values


def _taken(trial: Trial, one: Parameter) -> Scalar | None:
    if one.choices:
        return trial.suggest_categorical(one.name, one.choices)
    if one.whole:
        return trial.suggest_int(one.name, int(one.low), int(one.high), log=one.log, step=int(one.step or 1))
    return trial.suggest_float(one.name, one.low, one.high, log=one.log, step=one.step)
