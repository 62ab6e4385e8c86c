"""Commands on the published reference, whose answers a hand can check: what most tests of the command line ask."""

from planner.cli import run as run_as_typed

REFERENCE = ["--scenario", "reference"]
_WITH_A_SCENARIO = (
    *(["evaluate"], ["pareto"], ["explain"], ["report"], ["sensitivity"]),
    *(["catalog", "show"], ["scenario", "show"]),
)


def on_reference(arguments):
    """The arguments with the reference as their scenario, where they name none and their command takes one."""
    arguments = list(arguments)
    if {"--scenario", "--from", "--help", "--version"} & set(arguments) or "evaluate" in arguments[1:]:
        return arguments
    for command in _WITH_A_SCENARIO:
        if arguments[: len(command)] == command:
            return [*command, *REFERENCE, *arguments[len(command) :]]
    return [*REFERENCE, *arguments] if not arguments or arguments[0].startswith("-") else arguments


def run(arguments):
    return run_as_typed(on_reference(arguments))
