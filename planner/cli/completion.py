"""``plan completion``: the shell's completion script."""

from __future__ import annotations

import click


@click.command("completion")
@click.argument("shell", metavar="SHELL", type=click.Choice(["bash", "zsh", "fish"]))
def command(shell: str) -> None:
    """Print the completion script of a shell: bash, zsh or fish. For bash: source <(plan completion bash)."""
    from click.shell_completion import get_completion_class

    from planner.cli.app import plan

    completion = get_completion_class(shell)
    if completion is None:
        raise click.UsageError(f"click has no completion for {shell}")
    click.echo(completion(plan, {}, "plan", "_PLAN_COMPLETE").source())
