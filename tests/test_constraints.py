"""Every constraint: its rows on a tiny scenario (golden files, the same on PuLP 3 and 4), and cases solved by hand.

After a deliberate change of rows: ``pytest tests/test_constraints.py --update-golden``, then read the difference.
"""

import inspect

import pytest
from tiny import TINY, tiny, with_device

from planner.errors import InputError
from planner.milp import constraints
from planner.milp.objective import worst_tpot_s, worst_ttft_s
from planner.milp.program import assemble, optimise
from planner.milp.solver import Linear, Program, solve
from planner.milp.variables import add_devices, add_pools, add_slot
from planner.options import Option, Speculation, cost_table
from planner.question import Question, question_of
from planner.schema.scenario import Scenario

DRAFT, HEAD = Speculation("drafter", 1), Speculation("head", 1)
GPU, LPU = Option("gpu", 1, 2), Option("lpu", 1, 1)


class Built:
    """A program with the variables of the tiny scenario's slot and the rows of its transfers."""

    def __init__(self, scenario: Scenario, unit: float = 4.0) -> None:
        self.scenario, self.program = scenario, Program("tiny")
        table = cost_table(scenario, "chat")
        shares = range(scenario.max_shares)
        self.slots = [add_slot(self.program, scenario, table, (0, share), unit, {}) for share in shares]
        self.slot = self.slots[0]
        self.pools = add_pools(self.program, scenario, self.slots)
        self.devices = add_devices(self.program, scenario, self.pools)
        self.transfers = constraints.transfers_between_devices(self.program, scenario, self.slot)
        self.rows_of_transfers = self.program.row_names

    def delta(self, speculation: Speculation):
        return self.slot.delta[self.slot.table.speculations.index(speculation)]

    def rate(self, speculation: Speculation):
        return self.slot.rate[self.slot.table.speculations.index(speculation)]

    def choices(self, phase, speculation: Speculation):
        s = self.slot.table.speculations.index(speculation)
        return {c.option: c for c in self.slot.choices[phase] if s in c.group}

    def least(self, expression: Linear, **fixed) -> float | None:
        """The least value of an expression with some variables fixed; null if no value is feasible."""
        for variable in self.program.problem.variables():
            if variable.name in fixed:
                variable.lowBound = variable.upBound = fixed[variable.name]
        self.program.minimize(expression)
        outcome = solve(self.program)
        return outcome.objective if outcome.has_incumbent else None

    def most(self, expression: Linear, **fixed) -> float | None:
        least = self.least(expression.scaled(-1.0), **fixed)
        return None if least is None else -least


def text_of(program: Program, names: frozenset[str]) -> str:
    """Rows in the order of their making, terms by name: PuLP 3 and 4 would order and round them differently."""
    sense = {-1: "<=", 0: "=", 1: ">="}
    lines = []
    for row in (row for row in program.problem.constraints() if row.name in names):
        terms = sorted((variable.name, coefficient) for variable, coefficient in row.items())
        lines += [f"{row.name}:", *(f"  {coefficient:+.9g} {name}" for name, coefficient in terms)]
        lines.append(f"  {sense[row.sense]} {0.0 - row.constant:.9g}")
    return "\n".join([*lines, ""])


def rows_added(built: Built) -> str:
    """Rows beside those of the transfers."""
    return text_of(built.program, built.program.row_names - built.rows_of_transfers)


GOLDENS = {
    "one_speculation": lambda b: constraints.one_speculation(b.program, b.slot),
    "one_option_per_phase": lambda b: constraints.one_option_per_phase(b.program, b.slot),
    "rate_follows_speculation": lambda b: constraints.rate_follows_speculation(b.program, b.slot),
    "flow_is_carried": lambda b: constraints.flow_is_carried(b.program, b.slot),
    "flow_follows_option": lambda b: constraints.flow_follows_option(b.program, b.slot),
    "interactivity_floor": lambda b: constraints.interactivity_floor(b.program, b.scenario, b.slot, b.transfers),
    "ttft_arms_s": lambda b: constraints.ttft_arms_s(b.program, b.slot, b.transfers),
    "ttft_ceiling": lambda b: constraints.ttft_ceiling(b.program, b.scenario, b.slot, b.transfers),
    "pool_in_use": lambda b: constraints.pool_in_use(b.program, b.pools),
    "pool_capacity": lambda b: constraints.pool_capacity(b.program, b.scenario, b.pools),
    "pool_is_bought": lambda b: constraints.pool_is_bought(b.program, b.scenario, b.pools),
    "pool_memory": lambda b: constraints.pool_memory(b.program, b.scenario, [b.slot], [b.transfers], b.pools),
    "device_inventory": lambda b: constraints.device_inventory(b.program, b.scenario, b.devices),
    "power_budget": lambda b: constraints.power_budget(
        b.program, b.scenario, constraints.fleet_power_w(b.scenario, [b.slot], [b.transfers], b.devices)
    ),
    "cost_budget": lambda b: constraints.cost_budget(b.program, b.scenario, b.devices),
    "demand": lambda b: constraints.demand(b.program, b.scenario, [b.slot], None),
    "mix": lambda b: constraints.mix(b.program, b.scenario, [b.slot], b.program.variable("scale")),
    "worst_tpot_s": lambda b: worst_tpot_s(b.program, [(b.slot, b.transfers)], 1e-3),
    "worst_ttft_s": lambda b: worst_ttft_s(b.program, [(b.slot, b.transfers)]),
}

# Rows that only a fleet with servers, owned devices and shares has.
FLEET_GOLDENS = {
    "larger_share_first": lambda b: constraints.larger_share_first(b.program, b.slots),
    "pool_capacity_with_spares": lambda b: constraints.pool_capacity(b.program, b.scenario, b.pools),
    "batch_fill": lambda b: constraints.batch_fill(b.program, b.scenario, b.pools),
    "whole_nodes": lambda b: constraints.whole_nodes(b.program, b.scenario, b.pools, b.devices),
    "purchases": lambda b: constraints.purchases(b.program, b.scenario, b.devices),
    "rack_power": lambda b: constraints.rack_power(b.program, b.scenario, b.devices),
    "pool_memory_shared": lambda b: constraints.pool_memory(
        b.program, b.scenario.replace(shared_pools=True), b.slots[:1], [b.transfers], b.pools
    ),
}


def served_fleet(**changes) -> Scenario:
    """The tiny scenario with servers of four, some owned, in two racks, with a spare in every pool."""
    servers = {
        "by_node": True,
        "spare_replicas": 1,
        "min_batch_fill": 0.25,
        "racks": {"all": {"power_limit_kw": 6.0}, "lpus": {"power_limit_kw": 1.0, "devices": ("lpu",)}},
    }
    fleet = {"inventory": {"gpu": {"owned": 4, "purchasable": 8}, "lpu": 8}}
    scenario = tiny(fleet=fleet, servers=servers, **changes)
    return with_device(with_device(scenario, "gpu", devices_per_host=4), "lpu", devices_per_host=2)


@pytest.mark.parametrize("name", FLEET_GOLDENS)
def test_rows_of_fleets_are_as_written_down(name, golden):
    shared = name.endswith("_shared")
    built = Built(served_fleet(max_shares=1 if shared else 2, shared_pools=shared, proposers=("drafter",)))
    FLEET_GOLDENS[name](built)
    golden(f"lp/{name}.lp", rows_added(built))


@pytest.mark.parametrize("name", GOLDENS)
def test_rows_are_as_written_down(name, golden):
    built = Built(Scenario.model_validate(TINY))
    GOLDENS[name](built)
    golden(f"lp/{name}.lp", rows_added(built))


def test_rows_of_transfers_are_as_written_down(golden):
    built = Built(Scenario.model_validate(TINY))
    golden("lp/transfers_between_devices.lp", text_of(built.program, built.rows_of_transfers))


@pytest.mark.parametrize("basis", ["forward", "average"])
def test_power_rows_of_the_other_bases_are_as_written_down(basis, golden):
    built = Built(Scenario.model_validate({**TINY, "power_basis": basis}))
    GOLDENS["power_budget"](built)
    golden(f"lp/power_budget_{basis}.lp", rows_added(built))


def test_rows_of_exact_rates_are_as_written_down(golden):
    built = Built(Scenario.model_validate(TINY))
    constraints.demand(built.program, built.scenario, [built.slot], {"chat": 3.0})
    golden("lp/demand_exact.lp", rows_added(built))


def test_no_constraint_is_untested():
    public = {
        name
        for name, function in vars(constraints).items()
        if inspect.isfunction(function)
        and function.__module__ == constraints.__name__
        and not name.startswith("_")
        and "program" in inspect.signature(function).parameters
    }
    tested = {name for name in GOLDENS if not name.startswith("worst_")} | {*FLEET_GOLDENS, "transfers_between_devices"}
    assert public == tested - {"pool_capacity_with_spares", "pool_memory_shared"}


def test_every_golden_has_rows_and_every_file_a_test(request):
    folder = request.path.parent / "golden" / "lp"
    others = {"transfers_between_devices", "power_budget_forward", "power_budget_average", "demand_exact"}
    assert {path.stem for path in folder.iterdir()} == {*GOLDENS, *FLEET_GOLDENS, *others}
    assert all(path.read_text().count(":\n") >= 1 for path in folder.iterdir())


def test_a_row_name_is_used_once():
    program = Program("twice")
    row = Linear([(program.variable("x"), 1.0)])
    program.row("a", row, "<=", 1.0)
    with pytest.raises(AssertionError, match="two rows are named a"):
        program.row("a", row, "<=", 2.0)


def test_all_rows_of_a_whole_program_reach_the_solver():
    scenario = Scenario.model_validate({**TINY, "objective": "interactivity"})
    built = assemble(scenario, {"chat": cost_table(scenario, "chat")}, question_of(scenario))
    assert sorted(row.name for row in built.program.problem.constraints()) == sorted(built.program.row_names)
    built.program.minimize(built.goal.expression)
    solve(built.program)
    assert built.program.problem.solverModel.getNumRow() == len(built.program.row_names)


# ----------------------------------------------------------------------------- one design per slot, by hand


def test_one_speculation():
    b = Built(tiny())
    GOLDENS["one_speculation"](b)
    every = Linear((delta, 1.0) for delta in b.slot.delta.values())
    assert len(b.slot.delta) == 3
    assert (b.least(every), b.most(every)) == (1.0, 1.0)
    assert b.most(Linear([(b.delta(HEAD), 1.0)]), **{b.delta(DRAFT).name: 1}) == 0.0


def test_one_option_per_phase():
    b = Built(tiny())
    GOLDENS["one_option_per_phase"](b)
    chosen = Linear((c.x, 1.0) for c in b.choices("draft_decode", DRAFT).values())
    on, off = {b.delta(DRAFT).name: 1}, {b.delta(DRAFT).name: 0}
    assert (b.least(chosen, **on), b.most(chosen)) == (1.0, 1.0)
    assert b.most(chosen, **off) == 0.0


def bounded(**changes) -> Built:
    """The tiny scenario with a budget, so that rates have bounds."""
    return Built(tiny(fleet={"power_budget_kw": 10.0}, power_basis="forward", **changes))


def test_rate_follows_speculation():
    b = bounded()
    GOLDENS["rate_follows_speculation"](b)
    rate = Linear([(b.rate(DRAFT), 1.0)])
    assert b.most(rate, **{b.delta(DRAFT).name: 0}) == 0.0
    # A request takes 40 J of prefill, 3 J of draft prefill and 101/1.6 steps of 2 J + 0.1 J, times 1.2 of PUE.
    joules = 1.2 * (40 + 3 + 101 / 1.6 * 2.1)
    assert b.most(rate, **{b.delta(DRAFT).name: 1}) == pytest.approx(10_000 / joules / 4.0)


def test_flow_is_carried():
    b = bounded()
    GOLDENS["flow_is_carried"](b)
    flows = Linear((c.f, 1.0) for c in b.choices("draft_decode", DRAFT).values())
    fixed = {b.rate(DRAFT).name: 0.7, b.rate(HEAD).name: 0.2}
    assert (b.least(flows, **fixed), b.most(flows)) == (pytest.approx(0.7), pytest.approx(0.7))
    prefill = Linear([(b.choices("target_prefill", DRAFT)[Option("gpu", 1, 1)].f, 1.0)])
    assert b.least(prefill, **{b.rate(Speculation(None, 0)).name: 0.1}) == pytest.approx(0.7 + 0.2 + 0.1)


def test_flow_follows_option():
    b = bounded()
    GOLDENS["flow_follows_option"](b)
    on_lpu = b.choices("draft_decode", DRAFT)[LPU]
    flow = Linear([(on_lpu.f, 1.0)])
    assert b.most(flow, **{on_lpu.x.name: 0}) == 0.0
    assert b.most(flow, **{on_lpu.x.name: 1}) == pytest.approx(10_000 / (1.2 * (43 + 101 / 1.6 * 2.1)) / 4.0)


def test_transfers_between_devices():
    b = Built(tiny())
    moved = b.transfers
    exchange = moved.step[0]
    verify, near, far = (
        b.choices("target_verify", DRAFT)[GPU],
        b.choices("draft_decode", DRAFT)[GPU],
        b.choices("draft_decode", DRAFT)[LPU],
    )
    together = {verify.x.name: 1, near.x.name: 1, far.x.name: 0}
    assert b.least(exchange.chosen, **together) == 0.0
    apart = {verify.x.name: 1, near.x.name: 0, far.x.name: 1}
    assert b.least(exchange.chosen, **apart) == 1.0
    assert b.least(exchange.flow, **{verify.f.name: 0.5, near.f.name: 0.0, far.f.name: 0.5}) == 0.5
    # Two messages of 500 µs, and 1 MB at 1 GB/s; the drafter's KV: 500 µs and 1000/1101 GB, of which a quarter shows.
    assert exchange.transfer.exposed_s == pytest.approx(2 * 500e-6 + 1e-3)
    assert moved.draft_kv[0].transfer.exposed_s == pytest.approx(0.25 * (500e-6 + 1000 / 1101))
    assert moved.draft_kv[0].transfer.energy_j == pytest.approx(1e9 * 1000 / 1101 * 1000e-12)


def test_transfers_are_free_without_a_link():
    b = Built(tiny(transfers=None))
    assert b.transfers == constraints.Transfers()
    assert b.program.row_names == frozenset()


# --------------------------------------------------------------------------------- service of a user, by hand


def answer(scenario: Scenario, aim: str, rate: float | None = 1.0) -> float | None:
    rates = None if rate is None else {"chat": rate}
    return optimise(scenario, {"chat": cost_table(scenario, "chat")}, Question(aim, rates)).value


# Plain: 30 ms; drafting on gpu 40 + 10 ms for 1.6 tokens, on lpu 40 + 2 + 2 (link) ms.
FASTEST = 1.6 / 0.044


def test_interactivity_floor():
    assert answer(tiny(), "interactivity") == pytest.approx(FASTEST)
    # Slack or just met, the floor changes nothing; 1e-5 above it nothing is left.
    for floor in (1.0, FASTEST):
        assert answer(tiny({"interactivity_floor_tps": floor}), "interactivity") == pytest.approx(FASTEST)
    assert answer(tiny({"interactivity_floor_tps": FASTEST * (1 + 1e-5)}), "interactivity") is None
    # Between plain decode and drafting the floor decides how the least energy is reached.
    plain = (40 + 100 * 2.0) / 101
    drafted = (40 + 3 + 101 / 1.6 * (2.1 + 1e6 * 1000e-12)) / 101
    assert answer(tiny({"interactivity_floor_tps": 1.0}), "energy") == pytest.approx(drafted)
    assert answer(tiny({"interactivity_floor_tps": 1.0}, proposers=()), "energy") == pytest.approx(plain)


def test_ttft_ceiling_through_the_prefill():
    plain = {"proposers": ()}
    assert answer(tiny({"ttft_ceiling_ms": 100.0}, **plain), "ttft") == pytest.approx(0.1)
    assert answer(tiny({"ttft_ceiling_ms": 1000.0}, **plain), "ttft") == pytest.approx(0.1)
    assert answer(tiny({"ttft_ceiling_ms": 99.99}, **plain), "ttft") is None


@pytest.mark.parametrize(
    ("proposer", "ttft_s"),
    [
        ("drafter", max(0.100, 0.120 + 0.002 + 0.002) + 0.040),
        ("head", 0.100 + 0.120 + 0.002 + 0.002 + 0.040),
    ],
)
def test_ttft_ceiling_through_the_first_draft(proposer, ttft_s):
    places = {"draft_prefill": "lpu", "draft_decode": "lpu"}
    fast = {"interactivity_floor_tps": 35.0}  # only drafting on lpu is that fast
    on_lpu = {"proposers": (proposer,), "places": places}
    assert answer(tiny(fast, **on_lpu), "ttft") == pytest.approx(ttft_s)
    assert answer(tiny({**fast, "ttft_ceiling_ms": ttft_s * 1e3}, **on_lpu), "ttft") == pytest.approx(ttft_s)
    assert answer(tiny({**fast, "ttft_ceiling_ms": ttft_s * 1e3 * (1 - 1e-5)}, **on_lpu), "ttft") is None
    after_prefill = tiny({**fast, "ttft_ceiling_ms": 100.0}, first_token="after_prefill", **on_lpu)
    assert answer(after_prefill, "ttft") == pytest.approx(0.1)


# ------------------------------------------------------------------------------------------- the fleet, by hand

PLAIN = {"proposers": (), "max_utilization": 0.8}
# Plain decode: 0.1 s of prefill; 100 steps of 30 ms for two at a time; 8 GB left for 2 GB of KV: R = 4.
VERIFY_BUSY_S = 100 * 0.030 / 2


def test_pool_capacity():
    per_rate = (0.1 + VERIFY_BUSY_S) / 0.8
    fractional = tiny(counts="fractional", **PLAIN)
    assert answer(fractional, "cost", 4.0) == pytest.approx(2.0 * per_rate * 4.0)
    # 1.0666 requests/s keep two replicas of verify at 80 %; a little more asks for a third. One prefills.
    full = 2 * 0.8 / VERIFY_BUSY_S
    assert answer(tiny(**PLAIN), "cost", full) == pytest.approx(2.0 * 3)
    assert answer(tiny(**PLAIN), "cost", full * 1.0001) == pytest.approx(2.0 * 4)
    assert answer(tiny(**PLAIN), "cost", full * 0.9) == pytest.approx(2.0 * 3)


def test_pool_is_bought():
    assert answer(tiny(**PLAIN), "cost", 1e-4) == pytest.approx(2.0 * 2)
    assert answer(tiny(fleet={"cost_budget_usd_per_hour": 4.0}, **PLAIN), "throughput", None) is not None
    assert answer(tiny(fleet={"cost_budget_usd_per_hour": 3.99}, **PLAIN), "throughput", None) is None
    lpu_too = {"interactivity_floor_tps": 35.0}
    assert answer(tiny(lpu_too), "cost", 1e-4) == pytest.approx(2.0 * 2 + 1.0 + 1.0)


def test_pool_memory():
    # Drafting on lpu: a sequence is held for 101/1.6 steps of 44 ms, by the target (R = 4) and the drafter (R = 3).
    held_s = 101 / 1.6 * 0.044
    lpu = {"counts": "fractional", "max_utilization": 1.0, "places": {"draft_prefill": "lpu", "draft_decode": "lpu"}}
    fast = {"interactivity_floor_tps": 35.0}
    verify = 101 / 1.6 * 0.040 / 2
    assert verify > held_s / 4  # the target's pool has room, the drafter's is sized by memory
    draft = 101 / 1.6 * 0.002
    assert draft < held_s / 3
    expected = 2.0 * (0.1 + verify) + 1.0 * (0.120 + held_s / 3)
    assert answer(tiny(fast, **lpu), "cost") == pytest.approx(expected)
    roomy = with_device(tiny(fast, **lpu), "lpu", memory_gb=4000.0)
    assert answer(roomy, "cost") == pytest.approx(2.0 * (0.1 + verify) + 1.0 * (0.120 + draft))
    # With room for two only, the target's pool too is sized by memory: what it holds is drafted elsewhere for 4 ms.
    cramped = with_device(tiny(fast, **lpu), "gpu", memory_gb=12.0)
    assert held_s / 2 > verify
    assert answer(cramped, "cost") == pytest.approx(2.0 * (0.1 + held_s / 2) + 1.0 * (0.120 + held_s / 3))


def test_a_batch_that_does_not_fit_is_no_option():
    assert answer(with_device(tiny(**PLAIN), "gpu", memory_gb=12.0), "energy") is not None
    assert answer(with_device(tiny(**PLAIN), "gpu", memory_gb=11.99), "energy") is None


def test_device_inventory():
    full = 2 * 0.8 / VERIFY_BUSY_S
    for available, expected in ((2, full / 2), (3, full), (4, full * 1.5)):
        found = answer(tiny(fleet={"inventory": {"gpu": available}}, **PLAIN), "throughput", None)
        assert found == pytest.approx(101 * expected)
    assert answer(tiny(fleet={"inventory": {"gpu": 1}}, **PLAIN), "throughput", None) is None
    assert answer(tiny(fleet={"inventory": {"gpu": 3}}, **PLAIN), "cost", full) == pytest.approx(6.0)
    assert answer(tiny(fleet={"inventory": {"gpu": 2}}, **PLAIN), "cost", full) is None


@pytest.mark.parametrize(
    ("basis", "watts_per_rate"),
    [
        ("forward", 1.2 * (40 + 100 * 2.0)),
        ("provisioned", 1.2 * 500 * (0.1 + VERIFY_BUSY_S) / 0.8),
        ("average", 1.2 * 1.25 * (100 * (0.1 + VERIFY_BUSY_S) * (1 / 0.8 - 1) + 40 + 100 * 2.0)),
    ],
)
def test_power_budget(basis, watts_per_rate):
    scenario = tiny(fleet={"power_budget_kw": 6.0}, counts="fractional", power_basis=basis, **PLAIN)
    assert answer(scenario, "throughput", None) == pytest.approx(101 * 6000 / watts_per_rate)
    exact = 6000 / watts_per_rate
    assert answer(scenario, "power", exact) == pytest.approx(6000)
    assert answer(scenario, "power", exact / 3) == pytest.approx(2000)
    assert answer(scenario, "power", exact * 1.00001) is None


def test_cost_budget():
    per_rate = 2.0 * (0.1 + VERIFY_BUSY_S) / 0.8
    scenario = tiny(fleet={"cost_budget_usd_per_hour": 12.0}, counts="fractional", **PLAIN)
    assert answer(scenario, "throughput", None) == pytest.approx(101 * 12.0 / per_rate)
    assert answer(scenario, "cost", 12.0 / per_rate) == pytest.approx(12.0)
    assert answer(scenario, "cost", 12.0 / per_rate * 1.00001) is None


def test_demand():
    most = 6000 / (1.2 * (40 + 100 * 2.0))
    fleet = {"power_budget_kw": 6.0}
    plain = {"counts": "fractional", "power_basis": "forward", **PLAIN}
    for demand in (most / 2, most):
        found = answer(tiny({"demand_rps": demand}, fleet, **plain), "throughput", None)
        assert found == pytest.approx(101 * most)
    assert answer(tiny({"demand_rps": most * 1.00001}, fleet, **plain), "throughput", None) is None
    # At exact rates it is served exactly, whatever the demand asks.
    assert answer(tiny({"demand_rps": most / 2}, fleet, **plain), "throughput", most / 4) == pytest.approx(
        101 * most / 4
    )


def test_mix():
    b = bounded()
    scale = b.program.variable("scale")
    constraints.mix(b.program, b.scenario, [b.slot], scale)
    fixed = {b.rate(DRAFT).name: 0.5, b.rate(HEAD).name: 0.25, b.rate(Speculation(None, 0)).name: 0.0}
    assert b.least(Linear([(scale, 1.0)]), **fixed) == pytest.approx(0.75)
    assert b.most(Linear([(scale, 1.0)])) == pytest.approx(0.75)


def test_throughput_without_a_bound_is_refused():
    with pytest.raises(InputError, match="nothing bounds the throughput"):
        answer(tiny(), "throughput", None)
