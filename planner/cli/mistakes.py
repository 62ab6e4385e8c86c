"""Say a mistake in the command line in one line, with the nearest valid names; click's own words change with it."""

from __future__ import annotations

from typing import Any

import click

from planner.errors import nearest


class Group(click.Group):
    """A group that names the nearest commands where one does not exist."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find a subcommand, or name the nearest ones."""
        if args and args[0] not in self.list_commands(ctx):
            raise click.UsageError(
                f"there is no command '{args[0]}' ({nearest(args[0], self.list_commands(ctx))})", ctx
            )
        return super().resolve_command(ctx, args)


def tell(error: click.ClickException) -> None:
    """Print a mistake on standard error."""
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        error.show()
        return
    click.echo(f"error: {_words(error)}", err=True)
    ctx = getattr(error, "ctx", None)
    if ctx is not None:
        click.echo(f"see: {ctx.command_path} --help", err=True)


def _words(error: click.ClickException) -> str:
    if isinstance(error, click.NoSuchOption):
        names = [name for parameter in _parameters(error) for name in parameter.opts if name.startswith("-")]
        return f"there is no option '{error.option_name}' ({nearest(error.option_name, names)})"
    if isinstance(error, click.MissingParameter):
        return f"{_name(error.param)}: missing"
    if isinstance(error, click.BadParameter):
        return f"{_name(error.param)}: {error.message.rstrip('.')}"
    if isinstance(error, click.BadOptionUsage):
        return f"{error.option_name}: a value is missing"
    return error.format_message()


def _parameters(error: click.UsageError) -> list[Any]:
    return [] if error.ctx is None else list(error.ctx.command.get_params(error.ctx))


def _name(parameter: click.Parameter | None) -> str:
    if parameter is None:
        return "the command line"
    return parameter.opts[0] if parameter.param_type_name == "option" else parameter.human_readable_name
