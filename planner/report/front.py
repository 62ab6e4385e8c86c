"""A front as a person reads it: its ends, its knee, and a table of its points."""

from __future__ import annotations

from collections.abc import Sequence

from planner.report.numbers import LIMIT_WORDS, figure, percent
from planner.report.sentences import drafting_sentence, listed, placement_sentence, reasons
from planner.report.tables import Table
from planner.report.views import View, foot
from planner.schema import documents as doc
from planner.schema.front import Front, FrontPoint, Search
from planner.schema.scenario import Scalar

MOST_ROWS = 15
_MOST_IMPORTANT = 4
# Parameters of a search that only restrict its designs, which show what they are themselves.
RESTRICTIONS = ("proposer", "max_batch", "interactivity_floor")


def front_view(front: Front, most: int = MOST_ROWS) -> View:
    """Lay out a front; of many points ``most`` are shown, among them both ends and the knee."""
    end = foot(front.provenance)
    if not front.points:
        title = f"Front for {front.scenario}: {'infeasible' if front.exact else 'no incumbent'}"
        why = reasons(front.infeasibility) if front.exact else [_nothing(front)]
        return View(title, why, [], front.assumptions, front.warnings, end)
    rows = shown_rows(front, most)
    varied = trials_table(front, rows, RESTRICTIONS) if front.search is not None else None
    shown = [points_table(front, rows), *([varied] if varied is not None else [])]
    return View(f"Front for {front.scenario}", front_sentences(front), shown, front.assumptions, front.warnings, end)


def _nothing(front: Front) -> str:
    if front.search is None:
        return "The time limit was reached before any point was found."
    text = f"None of {front.search.trials} trials found a design within the limits"
    broken = [f"the {_limit_words(name)} by {percent(excess)}" for name, excess in front.search.nearest.items()]
    if broken:
        text += f"; the nearest one breaks {listed(broken)}"
    refused = front.search.refused
    return text + (f"; the values of {refused} do not fit together." if refused else ".")


def _limit_words(label: str) -> str:
    """Write a limit's name, with what it is of: ``demand[chat]``."""
    name, _, where = label.partition("[")
    return LIMIT_WORDS[name] + (f" ({where.rstrip(']')})" if where else "")  # type: ignore[index]


def _proof(front: Front) -> str:
    if front.exact:
        return "proven, no design under this model lies beyond it"
    return "stopped at the time limit, not whole" if front.search is None else "found by search, not proven"


def _search_sentences(search: Search, runtime_s: float) -> list[str]:
    """Say how many trials there were, how they were drawn, and how near they came to the exact front."""
    began = f", {search.warm_started} begun with designs of the exact front" if search.warm_started else ""
    found = [f"{search.trials} trials by {search.sampler}, seed {search.seed}{began}, in {runtime_s:.1f} s"]
    if search.refused:
        found.append(f"the values of {search.refused} trials do not fit together; they found nothing")
    if search.share_of_exact is not None:
        share = f"{100 * search.share_of_exact:.2f} %"
        found.append(f"they reach {share} of the exact front's hypervolume, {figure(search.exact_hypervolume)}")
    if search.importance:
        first = sorted(search.importance.items(), key=lambda item: -item[1])[:_MOST_IMPORTANT]
        found.append("what matters most: " + ", ".join(f"{name} {percent(value)}" for name, value in first))
    return found


def front_sentences(front: Front) -> list[str]:
    """Say where the front begins and ends, whether it is proven, where its knee is and what it spans."""
    first, last = front.points[0], front.points[-1]
    count = "one point" if len(front.points) == 1 else f"{len(front.points)} points"
    found = [f"{count}, from {_where(first)} to {_where(last)}; {_proof(front)}"]
    found += [] if front.search is None else _search_sentences(front.search, front.provenance.runtime_s)
    found.append(f"energy is watts of {front.power_basis} power per output token/s")
    if front.knee is not None:
        found.append(f"knee: {design_sentence(front.points[front.knee])}")
    reference = front.reference_point
    if front.hypervolume is not None and reference is not None:
        at = (
            f"{figure(reference.interactivity_tps)} tok/s and {figure(reference.energy_j_per_token)} J per output token"
        )
        found.append(f"hypervolume {figure(front.hypervolume)} tok/s × J/token, from the reference point {at}")
    return [text[0].upper() + text[1:] + "." for text in found]


def _where(point: FrontPoint) -> str:
    return f"{figure(point.interactivity_tps)} tok/s per user at {figure(point.energy_j_per_token)} J per output token"


def design_sentence(point: FrontPoint) -> str:
    """Say what a point offers and how: the design of the workload whose users see the least."""
    deployment = point.deployment
    return f"{_where(point)}; {placement_sentence(deployment)}; {drafting_sentence(deployment)}"


def shown_rows(front: Front, most: int) -> list[int]:
    """Choose points to show: all, or both ends, the knee, and others spread evenly."""
    count = len(front.points)
    if count <= most:
        return list(range(count))
    spread = {round(k * (count - 1) / (most - 2)) for k in range(most - 1)}
    return sorted(spread | ({front.knee} if front.knee is not None else set()))


def points_table(front: Front, rows: Sequence[int]) -> Table:
    """List some points of a front with their step phases, and the price where it is known."""
    priced = any(point.usd_per_million_tokens is not None for point in front.points)
    several = any(point.others for point in front.points)
    lines = []
    for row in rows:
        point = front.points[row]
        placements = point.deployment.placements
        lines.append(
            (
                figure(point.interactivity_tps) + (" ◆" if row == front.knee else ""),
                figure(point.energy_j_per_token),
                figure(point.ttft_s * 1e3),
                *((figure(point.usd_per_million_tokens),) if priced else ()),
                str(point.deployment.draft_length),
                option_words(placements["target_verify"]),
                option_words(placements["draft_decode"]),
            )
        )
    headers = ("tok/s", "J/tok", "TTFT ms", *(("$/M tok",) if priced else ()), "D", "verify", "draft")
    notes = ["tok/s: output tokens/s per user."] + (["◆ knee."] if front.knee is not None else [])
    if len(rows) < len(front.points):
        notes.append(f"{len(rows)} of {len(front.points)} points; all are in the JSON document.")
    if several:
        notes.append("Each row shows the workload whose users see the least.")
    return Table("Points", headers, tuple(lines), left=0, note=" ".join(notes), last=2)


def trials_table(front: Front, rows: Sequence[int], without: Sequence[str] = ()) -> Table | None:
    """List what the trials of some points had sampled, some parameters left out; nothing where there is nothing."""
    found = [(point, point.trial) for point in (front.points[row] for row in rows) if point.trial is not None]
    named = dict.fromkeys(name for _, trial in found for name in trial.parameters)
    names = [name for name in named if name.partition("[")[0] not in without]
    lines = tuple(
        (figure(point.interactivity_tps), str(trial.number), *(_cell(trial.parameters.get(name)) for name in names))
        for point, trial in found
    )
    return Table("Sampled", ("tok/s", "trial", *names), lines, left=0) if lines and names else None


def _cell(value: Scalar | None) -> str:
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return "–" if value is None else figure(float(value)) if number else str(value)


def option_words(place: doc.Placement | None) -> str:
    """Write where a phase runs, without what is one: ``gpu:tp4:b8``."""
    if place is None:
        return "–"
    degree = f":tp{place.tensor_parallel}" if place.tensor_parallel > 1 else ""
    batch = f":b{place.batch_size}" if place.batch_size > 1 else ""
    return f"{place.device}{degree}{batch}"
