"""A sensitivity document as a person reads it: what moves the answer most, and where the placement switches."""

from __future__ import annotations

import math
from collections.abc import Sequence

from planner.report.chart_sensitivity import tornado_chart
from planner.report.numbers import figure, in_unit
from planner.report.sections import Report, Section
from planner.report.sentences import phase_words, reasons
from planner.report.tables import Table
from planner.report.views import View, foot
from planner.schema.documents import DesignSummary
from planner.schema.sensitivity import Crossing, Move, Number, PhaseMove, Sensitivity
from planner.words import PHASES

_MOST_CROSSINGS = 8

# A whole number that moved by this much more or less than the step says to what it did.
_OTHER_STEP = 0.02


def sensitivity_view(found: Sensitivity, top: int) -> View:
    """Lay out for a terminal: sentences, then the numbers of largest effect and what they switch."""
    end, title = foot(found.provenance), f"Sensitivity for {found.scenario}"
    if not _is_answered(found):
        why = f"{title}: {found.status.replace('_', ' ')}"
        return View(why, _unanswered(found), [], found.assumptions, found.warnings, end)
    shown = _shown(found, top)
    tables = [table for table in (effects_table(found, shown), switches_table(found, shown)) if table is not None]
    crossings = tuple(crossing_sentences(found, _MOST_CROSSINGS))
    return View(title, answer_sentences(found), tables, found.assumptions, (), end, crossings)


def sensitivity_report(found: Sensitivity, top: int, drawn: bool = True) -> Report:
    """Lay out as a page, with every crossing and every number that was not moved."""
    title, end = f"Sensitivity for {found.scenario}", foot(found.provenance)
    if not _is_answered(found):
        return Report(title, "", (Section("The answer", tuple(_unanswered(found))),), end, found.warnings)
    shown = _shown(found, top)
    charts = (tornado_chart(found, shown),) if drawn and shown else ()
    tables = [effects_table(found, shown), switches_table(found, shown)]
    sections = [
        Section("The answer", tuple(answer_sentences(found))),
        Section("What moves the answer most", charts=charts, tables=tuple(t for t in tables if t is not None)),
        *_crossings_sections(found),
        _not_moved_section(found),
        Section("Assumptions in force", items=found.assumptions),
        _reproduce(found),
    ]
    held = tuple(s for s in sections if s.sentences or s.charts or s.tables or s.items or s.code)
    return Report(title, "", held, end, found.warnings, keys=True)


def _is_answered(found: Sensitivity) -> bool:
    return found.status == "optimal"


def _unanswered(found: Sensitivity) -> list[str]:
    if found.status == "infeasible":
        return reasons(found.infeasibility)
    if found.status == "no_incumbent":
        return ["The time limit was reached before any plan was found; give more time with --time-limit-s."]
    return [
        "The best plan is not proven within the time limit, so that no change of it can be told; give more time with"
        " --time-limit-s."
    ]


def _shown(found: Sensitivity, top: int) -> list[Number]:
    """Give the numbers of largest effect; those without any are left out."""
    return [number for number in found.numbers if _has_effect(number)][:top]


def _moves(number: Number) -> tuple[Move, Move]:
    return number.low, number.high


def _is_moved(number: Number) -> bool:
    return any(move.status != "not_moved" for move in _moves(number))


def _has_effect(number: Number) -> bool:
    return any(move.status in ("infeasible", "unproven") or bool(move.change) for move in _moves(number))


def _switches(number: Number) -> bool:
    return any(bool(move.placement_switches) for move in _moves(number))


# ------------------------------------------------------------------------------------------------------- sentences


def answer_sentences(found: Sensitivity) -> list[str]:
    """Say what moves the answer most, and how many numbers were moved."""
    goal, step = found.objective, figure(found.percent)
    best = {"throughput": "most throughput", "interactivity": "highest interactivity"}.get(
        goal.name, f"least {goal.name}"
    )
    sentences = [f"{best[0].upper()}{best[1:]} now: {in_unit(goal.value, goal.unit)}."]
    ends = [number for number in found.numbers if any(move.status == "infeasible" for move in _moves(number))]
    sentences += [_no_plan_sentence(number) for number in ends[:3]]
    if len(ends) > 3:
        sentences.append(f"{len(ends) - 3} more leave no plan.")
    most = max(found.numbers, key=_largest_change, default=None)
    if most is None or not _largest_change(most):
        sentences.append(f"No number changes the {goal.name} by ±{step} %.")
    else:
        told = " and ".join(_effect_words(found, most, move) for move in _moves(most) if move.objective is not None)
        sentences.append(f"Of ±{step} %, {most.key} (now {_value(most, most.value)}) moves it most: {told}.")
    return [*sentences, _count_sentence(found)]


def _largest_change(number: Number) -> float:
    return max(abs(move.relative_change or 0.0) for move in _moves(number))


def _value(number: Number, value: float | None) -> str:
    return figure(value) + (f" {number.unit}" if number.unit else "")


def _cell(number: Number, value: float | None) -> str:
    """Write a value for a narrow column: what it is per, the key says."""
    unit = number.unit.partition(" per ")[0]
    return figure(value) + (f" {unit}" if unit else "")


def _effect_words(found: Sensitivity, number: Number, move: Move) -> str:
    to = in_unit(move.objective, found.objective.unit)
    return f"{to} ({signed_percent(move.relative_change)}) at {_value(number, move.value)}"


def _no_plan_sentence(number: Number) -> str:
    values = [_value(number, move.value) for move in _moves(number) if move.status == "infeasible"]
    return f"No plan is left with {number.key} at {' or '.join(values)} (now {_value(number, number.value)})."


def _count_sentence(found: Sensitivity) -> str:
    moved = [number for number in found.numbers if _is_moved(number)]
    still = sum(not _has_effect(number) for number in moved)
    switching = sum(_switches(number) for number in moved)
    unproven = sum(any(move.status == "unproven" for move in _moves(number)) for number in moved)
    parts = [f"{len(moved)} of {len(found.numbers)} numbers were moved: {still} change nothing"]
    parts.append(f"{switching} {'switches' if switching == 1 else 'switch'} the placement")
    parts += [f"{unproven} could not be proven in time"] if unproven else []
    crossed = sum(bool(number.crossings) for number in found.numbers)
    span = f"from {_fraction(found.span)} to {figure(found.span)} times its value"
    return (
        f"{', '.join(parts)}. {span[0].upper()}{span[1:]}, each was looked at for the nearest switch of the placement:"
        f" {crossed} {'has' if crossed == 1 else 'have'} one."
    )


def _fraction(span: float) -> str:
    return f"1/{figure(span)}"


def signed_percent(value: float | None) -> str:
    """Write a relative change with its sign.

    >>> signed_percent(0.1264), signed_percent(-0.00012), signed_percent(0.0), signed_percent(None)
    ('+12.6 %', '−0.012 %', '0', '–')
    """
    if value is None:
        return "–"
    if value == 0:
        return "0"
    size = abs(100 * value)
    written = f"{size:.1f}" if size >= 0.1 else figure(size, 2)
    return f"{'−' if value < 0 else '+'}{written} %"


def crossing_sentences(found: Sensitivity, most: int | None = None) -> list[str]:
    """Say where the placement switches, the crossing nearest to today's value first."""
    pairs = nearest_crossings(found.numbers)
    several = len({choice.workload for choice in found.choices}) > 1
    told = [crossing_sentence(number, crossing, several) for number, crossing in pairs[:most]]
    if most is not None and len(pairs) > most:
        told.append(f"{len(pairs) - most} more, further away, stand in the files that --output writes, and in --json.")
    return told


def nearest_crossings(numbers: Sequence[Number]) -> list[tuple[Number, Crossing]]:
    """List all crossings, the nearest to today's value first."""
    pairs = [(number, crossing) for number in numbers for crossing in number.crossings]
    return sorted(pairs, key=lambda pair: _distance(*pair))


def _distance(number: Number, crossing: Crossing) -> float:
    ratio = crossing.value / number.value
    return abs(math.log(ratio)) if ratio > 0 else math.inf


def crossing_sentence(number: Number, crossing: Crossing, several: bool = False) -> str:
    """Say at which value which phase moves where."""
    value = _value(number, crossing.value)
    if number.whole:
        where = f"At {value} or {'less' if crossing.side == 'below' else 'more'}"
    else:
        where = f"{crossing.side.capitalize()} {value}"
    what = "no plan is left" if crossing.infeasible else _moves_words(crossing.moves, several)
    return f"{where}, {what} ({number.key}, now {_value(number, number.value)})."


def _moves_words(moves: Sequence[PhaseMove], several: bool) -> str:
    return " and ".join(_move_words(move, several) for move in moves) or "the shares move between placements"


def _move_words(move: PhaseMove, several: bool) -> str:
    phase = phase_words(move.phase) + (f" of {move.workload}" if several else "")
    if move.after is None:
        return f"{phase} runs no more"
    return f"{phase} moves from {move.before} to {move.after}" if move.before else f"{phase} runs, on {move.after}"


# ---------------------------------------------------------------------------------------------------------- tables


def effects_table(found: Sensitivity, shown: Sequence[Number]) -> Table | None:
    """Set out what each number does to the objective, the largest effect first."""
    if not shown:
        return None
    step = figure(found.percent)
    rows = tuple(
        (
            number.key,
            _cell(number, number.value),
            _change_words(found, number, number.low),
            _change_words(found, number, number.high),
            figure(number.elasticity, 3).replace("-", "−"),
        )
        for number in shown
    )
    headers = ("number", "now", f"−{step} %", f"+{step} %", "elasticity")
    note = f"Change of the {found.objective.name}. Elasticity: its relative change over that of the number."
    if any("(at " in cell for row in rows for cell in row):
        note += " Whole numbers move by 1 at least: (at) says to what, where that is another step."
    return Table("Largest effects", headers, rows, note=note, last=0, keys=1)


def _change_words(found: Sensitivity, number: Number, move: Move) -> str:
    words = {"infeasible": "no plan", "unproven": "not proven", "not_moved": "not moved"}
    told = words.get(move.status) or signed_percent(move.relative_change)
    moved = 0.0 if move.value is None or not number.value else abs(move.value / number.value - 1.0)
    other_step = number.whole and move.value is not None and abs(moved - found.percent / 100.0) > _OTHER_STEP
    return f"{told} (at {figure(move.value)})" if other_step else told


def switches_table(found: Sensitivity, shown: Sequence[Number]) -> Table | None:
    """Say what of the plan switches at the step, and to what, for the numbers shown."""
    base = {choice.workload: choice for choice in reversed(found.choices)}
    rows = []
    for number in shown:
        for move in _moves(number):
            words = _switch_words(base, move)
            if words:
                rows.append((number.key, _cell(number, move.value), words))
    if not rows:
        return None
    return Table("What the step switches", ("number", "at", "to"), tuple(rows), keys=1)


def _switch_words(base: dict[str, DesignSummary], move: Move) -> str:
    parts: list[str] = []
    for choice in move.choices if move.change else ():
        before = base.get(choice.workload)
        if before is None:
            continue
        for phase in PHASES:
            now, then = before.devices[phase], choice.devices[phase]
            if now != then:
                parts.append(f"{phase_words(phase)} on {then}" if then else f"no {phase_words(phase)}")
        if choice.proposer != before.proposer:
            parts.append(choice.proposer or "no proposer")
        if choice.draft_length != before.draft_length:
            parts.append(f"draft length {choice.draft_length}")
    return ", ".join(dict.fromkeys(parts))


def _crossings_sections(found: Sensitivity) -> list[Section]:
    title = "Where the placement switches"
    told = crossing_sentences(found)
    if not told:
        return [Section(title, ("It switches nowhere within the values looked at.",))]
    rows = []
    for number, crossing in nearest_crossings(found.numbers):
        better = "no plan left" if crossing.infeasible else signed_percent(crossing.gain)
        if crossing.gain is None and not crossing.infeasible:
            better = "today's has no plan"
        rows.append((number.key, _cell(number, number.value), crossing.side, _cell(number, crossing.value), better))
    headers = ("number", "now", "side", "crossing", "new placement better by")
    note = (
        "Better by: how much the new plan gains over the best with today's placement, just beyond the crossing. Near 0:"
        " they cross there; more: a limit or a whole count lets the new one in."
    )
    table = Table("", headers, tuple(rows), note=note, last=0, keys=1)
    return [Section(title, items=tuple(told)), Section("The crossings in figures", tables=(table,))]


def _not_moved_section(found: Sensitivity) -> Section:
    rows = []
    for number in found.numbers:
        for move in _moves(number):
            if move.status == "not_moved":
                to = "" if move.value is None else figure(move.value)
                rows.append((number.key, figure(number.value), to, (move.reason or "").rpartition(": ")[2]))
    unique = tuple(dict.fromkeys(rows))
    table = Table("", ("number", "now", "to", "why"), unique, keys=1)
    return Section("Not moved", tables=(table,) if unique else ())


def _reproduce(found: Sensitivity) -> Section:
    base = found.base_command or "plan"
    sentence = "Every move and every crossing is an answer of this command, with another KEY=VALUE:"
    return Section("Reproduce", (sentence,), code=(f"{base} --set KEY=VALUE",))
