"""An explanation as a person reads it: limits and what more of them would buy, every choice against its runner-up."""

from __future__ import annotations

from collections.abc import Sequence

from planner.report.numbers import LIMIT_WORDS, figure, in_unit, percent, signed
from planner.report.sentences import as_sentence, conflict_sentence, listed, phase_words
from planner.report.tables import Table
from planner.report.views import View, foot
from planner.schema.documents import DesignSummary
from planner.schema.explanation import Choice, ExplainedLimit, Explanation, Move, Nearest, PhaseFigures
from planner.words import PHASES, Phase

_SAME = 1e-6
_SHOWN = 5e-4
_OPERATIONS: dict[Phase, str] = {
    "target_prefill": "prefill",
    "target_verify": "verify",
    "draft_prefill": "prefill",
    "draft_decode": "draft",
}


def explanation_view(found: Explanation) -> View:
    """Lay out an explanation."""
    title = f"Why this plan for {found.scenario}" if found.status != "no_incumbent" else f"No plan for {found.scenario}"
    end = foot(found.provenance)
    if found.status == "infeasible":
        sentences = [as_sentence(text) for text in _conflict_sentences(found)]
        return View(f"Why no plan for {found.scenario}", sentences, _nearest_tables(found), (), found.warnings, end)
    if found.status == "no_incumbent":
        sentence = "The time limit was reached before any plan was found; give more time with --time-limit-s."
        return View(title, [sentence], [], (), found.warnings, end)
    texts = [_objective(found), *_binding(found), *(choice_sentence(found, one) for one in found.choices)]
    tables = [table for table in (_limits_table(found), _choices_table(found)) if table is not None]
    return View(title, [as_sentence(text) for text in texts], tables, (), found.warnings, end)


def _objective(found: Explanation) -> str:
    proven = "proven" if found.status == "optimal" else "not proven, so nothing is compared with it"
    return f"{found.objective.name} {in_unit(found.objective.value, found.objective.unit)}, {proven}"


# ------------------------------------------------------------------------------------------------- limits


def _several(found: Explanation) -> bool:
    return len({design.workload for design in found.designs}) > 1


def _name(found: Explanation, limit: ExplainedLimit) -> str:
    where = limit.device or limit.rack or (limit.workload if _several(found) else None)
    return LIMIT_WORDS[limit.name] + (f" ({where})" if where else "")


def _binding(found: Explanation) -> list[str]:
    """Say which limits bind, and what moving each of them buys."""
    if found.status != "optimal":
        return []
    if not found.limits:
        return ["no limit is set"]
    bind = [limit for limit in found.limits if limit.binding]
    if not bind:
        return ["no limit binds"]
    return [f"the {_name(found, limit)} binds: {_bought(found, limit)}" for limit in bind]


def _bought(found: Explanation, limit: ExplainedLimit) -> str:
    step, dropped = limit.step, limit.dropped
    text = f"{step_words(limit)} {_gives(found, step)}"
    if dropped is not None and not step.change and not step.unbounded:
        text += f"; without it {_gives(found, dropped)}"
    best = step if step.change or dropped is None else dropped
    moved = switches(found.designs, best.designs) if best.change else ""  # equal plans differ by chance
    return text + (f", with {moved}" if moved else "")


def step_words(limit: ExplainedLimit) -> str:
    """Say by how much a limit is moved."""
    assert limit.step.moved_to is not None  # a step always leads somewhere
    by = limit.step.moved_to - limit.bound
    if limit.name in ("power_budget", "cost_budget", "inventory"):
        return signed(by, limit.unit)
    return f"{abs(by) / limit.bound:.0%}".replace("%", " %") + (" more" if by > 0 else " less")


def _gives(found: Explanation, move: Move) -> str:
    if move.unbounded:
        return "nothing bounds the throughput"
    if move.objective_value is None or move.change is None:
        return "is not proven in time"
    if move.change == 0:
        return "changes nothing"
    told = move.change_share is not None and abs(move.change_share) >= _SHOWN
    share = f" ({signed_percent(move.change_share or 0.0)})" if told else ""
    return f"gives {signed(move.change, found.objective.unit)}{share}"


def signed_percent(share: float) -> str:
    """Write a change as per cent with its sign.

    >>> signed_percent(-0.0312)
    '−3.1 %'
    """
    return ("−" if share < 0 else "+") + percent(abs(share))


def switches(before: Sequence[DesignSummary], after: Sequence[DesignSummary]) -> str:
    """Say what the plan does otherwise: phases on other device types, another proposer, another draft length."""
    texts = []
    for mine, other in zip(before, after, strict=False):
        found = _moved(mine, other)
        if other.proposer != mine.proposer:
            found.append(f"drafts by {other.proposer}" if other.proposer else "plain decode")
        if other.draft_length != mine.draft_length and other.proposer is not None:
            found.append(f"draft length {other.draft_length}")
        if found:
            texts.append((f"{mine.workload}: " if len(before) > 1 else "") + ", ".join(found))
    return "; ".join(texts)


def _moved(mine: DesignSummary, other: DesignSummary) -> list[str]:
    moved: dict[str, list[str]] = {}
    for phase in PHASES:
        there = other.devices[phase]
        if there != mine.devices[phase] and there is not None:
            moved.setdefault(there, []).append(phase_words(phase))
    return [f"{listed(phases)} on {device}" for device, phases in moved.items()]


def _limits_table(found: Explanation) -> Table | None:
    if not found.limits:
        return None
    rows = []
    for limit in found.limits:
        binds = {True: "yes", False: "no", None: "?"}[limit.binding]
        cells = (in_unit(limit.bound, limit.unit), binds, step_words(limit))
        rows.append((_name(found, limit), *cells, _short(found, limit.step), _short(found, limit.dropped)))
    headers = ("limit", "bound", "binds", "moved by", "gives", "dropped")
    note = f"Changes in {_unit(found)}, each by a plan solved anew."
    return Table("What more would buy", headers, tuple(rows), note=note)


def _short(found: Explanation, move: Move | None) -> str:
    if move is None:
        return "–"
    if move.unbounded:
        return "no bound"
    if move.change is None:
        return "–"
    return "no change" if move.change == 0 else _bare(found, signed(move.change, found.objective.unit))


def _bare(found: Explanation, text: str) -> str:
    """Leave out the objective's unit, which the headers have."""
    return text.removesuffix(f" {_unit(found)}")


def _unit(found: Explanation) -> str:
    """Give the unit that people use for the objective."""
    return in_unit(2.0, found.objective.unit).partition(" ")[2]


# ------------------------------------------------------------------------------------------------ choices


def choice_sentence(found: Explanation, choice: Choice) -> str:
    """Say in one line why the runner-up of a choice lost."""
    for_whom = f"for {choice.workload}, " if _several(found) else ""
    here = for_whom + _chosen(choice)
    if choice.objective_value is None:
        return f"{here}; {_no_rival(choice)}"
    numbers = _against(choice)
    costs = _tie(found, choice) if not choice.loss else f"gives up {_lost(found, choice)}"
    return f"{here}; {_rival(choice)} {costs}" + (f": {numbers}" if numbers else "")


def _chosen(choice: Choice) -> str:
    if choice.choice == "proposer":
        return f"the proposer is {choice.chosen}" if choice.chosen else "nothing is proposed"
    if choice.choice == "draft_length":
        return f"the draft length is {choice.chosen}"
    return f"{choice.choice.replace('_', ' ')} is on {choice.chosen}"


def _rival(choice: Choice) -> str:
    return f"{choice.runner_up or 'plain decode'}, the runner-up,"


def _no_rival(choice: Choice) -> str:
    what = {"proposer": "proposer", "draft_length": "draft length"}.get(choice.choice, "device type")
    if choice.pinned:
        return "it is pinned there"
    if not choice.proven:
        return "its runner-up is not proven in time"
    if not choice.blocked_by:
        return f"no other {what} on offer can do it"
    limits = listed([LIMIT_WORDS[name] for name in choice.blocked_by])
    if choice.choice == "proposer" and choice.chosen is not None:
        return f"neither another proposer nor plain decode meets the {limits}"
    return f"no other {what} meets the {limits}"


def _tie(found: Explanation, choice: Choice) -> str:
    """Say what decided between two that are equally good: the lesser power, if anything."""
    more = None if choice.power_w is None or found.power_w is None else choice.power_w - found.power_w
    if more is None or abs(more) <= _SAME * abs(found.power_w or 0.0):
        return "is as good, at the same power"
    return f"is as good, at {signed(more, 'W')} of power"


def _lost(found: Explanation, choice: Choice) -> str:
    assert choice.loss is not None  # a runner-up has one
    share = "" if choice.loss_share is None else f" ({percent(choice.loss_share)})"
    return in_unit(choice.loss, found.objective.unit) + share


def _against(choice: Choice) -> str:
    """Set the phase's figures on the runner-up beside those of the plan, or who is served how by another draft."""
    if not choice.figures:
        if choice.interactivity_tps is None:
            return ""
        return f"{figure(choice.interactivity_tps)} tok/s per user, first token after {in_unit(choice.ttft_s, 's')}"
    mine, other = choice.figures
    parts = []
    if mine.operation_s is not None and other.operation_s is not None:
        name = _OPERATIONS[choice.choice]  # type: ignore[index]
        parts.append(f"{_operation(other)} per {name} against {_operation(mine)}")
    elif mine.operation_s != other.operation_s:
        parts.append("on the replicas that verify" if other.operation_s is None else "on replicas of its own")
    parts.append(f"{figure(other.energy_j_per_token, 3)} J/token against {figure(mine.energy_j_per_token, 3)}")
    parts.append(f"{figure(other.devices, 3)} devices busy against {figure(mine.devices, 3)}")
    return ", ".join(parts)


def _operation(figures: PhaseFigures) -> str:
    _, degree, batch = figures.option.rsplit(":", 2)
    return f"{in_unit(figures.operation_s, 's')} ({degree}, batch {batch.removeprefix('b')})"


def _choices_table(found: Explanation) -> Table | None:
    rows = []
    for choice in found.choices:
        if choice.objective_value is None or choice.loss is None:
            continue
        several = (choice.workload,) if _several(found) else ()
        who = str(choice.runner_up) if choice.runner_up is not None else "plain decode"
        value = _bare(found, in_unit(choice.objective_value, found.objective.unit))
        names = (choice.choice.replace("_", " "), str(choice.chosen or "plain decode"), who)
        rows.append((*several, *names, value, percent(choice.loss_share), figure(choice.interactivity_tps)))
    if not rows:
        return None
    headers = (*(("workload",) if _several(found) else ()), "choice", "plan", "runner-up", _unit(found), "loss")
    note = "The best plan that makes this one choice differently; all others are free."
    return Table("Runners-up", (*headers, "per user"), tuple(rows), left=len(headers) - 2, note=note)


# -------------------------------------------------------------------------------------------- infeasible


def _conflict_sentences(found: Explanation) -> list[str]:
    if not found.infeasibility:
        return [
            "no plan exists, whatever the budgets: stocks, racks, batch fill or shared memory rule every design out"
        ]
    rows = [nearest.conflict for nearest in found.infeasibility]
    names = list(dict.fromkeys(LIMIT_WORDS[row.limit] for row in rows))
    several = len({row.workload for row in rows if row.workload}) > 1
    enough = all(row.suffices for row in rows if row.holding)
    together = " together" + ("; moving any one of them to its nearest value is enough" if enough else "")
    together = together if len(names) > 1 else ""
    first = f"no plan meets the {listed(names)}{together}"
    return [first, *(conflict_sentence(row, several) for row in rows)]


def _nearest_tables(found: Explanation) -> list[Table]:
    rows = [_nearest_row(found, one) for one in found.infeasibility if one.objective_value is not None]
    if not rows:
        return []
    note = "Each row moves one limit to its nearest achievable value and keeps all the others."
    headers = ("limit", "asked", "moved to", _unit(found), "D", "target on", "draft on")
    return [Table("The plan at the nearest value", headers, tuple(rows), note=note, last=2)]


def _nearest_row(found: Explanation, one: Nearest) -> tuple[str, ...]:
    row = one.conflict
    where = row.device or row.rack
    name = LIMIT_WORDS[row.limit] + (f" ({where})" if where else "")
    value = _bare(found, in_unit(one.objective_value, found.objective.unit))
    lengths = "/".join(dict.fromkeys(str(design.draft_length) for design in one.designs))
    places = (_where(one.designs, PHASES[:2]), _where(one.designs, PHASES[2:]))
    return (name, in_unit(row.asked, row.unit), in_unit(row.achievable, row.unit), value, lengths, *places)


def _where(designs: Sequence[DesignSummary], phases: Sequence[Phase]) -> str:
    devices = dict.fromkeys(design.devices[phase] for design in designs for phase in phases)
    return ", ".join(device for device in devices if device) or "–"
