"""The group of commands: loaded when called, errors translated once.

Adding a command is one line in :data:`COMMANDS` and a module with a click command of
that name. Nothing else is imported to print the help, so that it comes at once.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

import click

from trueup.errors import TrueupError

COMMANDS = {
    "fit": ("trueup.cli.fit", "Fit a map that makes PRIMARY agree with REFERENCE."),
    "apply": ("trueup.cli.apply", "Replace predictions by what a map makes of them."),
    "audit": ("trueup.cli.audit", "Say where PRIMARY and REFERENCE contradict."),
    "bounds": ("trueup.cli.bounds", "Bound accuracy or a loss without labels."),
    "evaluate": ("trueup.cli.evaluate", "Measure predictions with labels."),
    "show": ("trueup.cli.show", "Say what a saved map does and guarantees."),
    "demo": ("trueup.cli.demo", "Calibrate a real classifier, from data to report."),
}
"""Every command: where it is, and its line in the list of commands."""

_WIDTH = 88


class LazyGroup(click.Group):
    """A group that imports a command when it is called or asked for help."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - click's
        if cmd_name not in COMMANDS:
            return None
        module = import_module(COMMANDS[cmd_name][0])
        command: click.Command = module.command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and not args[0].startswith("-") and args[0] not in COMMANDS:
            import difflib

            near = difflib.get_close_matches(args[0], COMMANDS, n=1)
            guess = f" Did you mean {near[0]!r}?" if near else ""
            ctx.fail(f"no such command {args[0]!r}.{guess}")
        return super().resolve_command(ctx, args)

    def format_commands(
        self,
        ctx: click.Context,  # noqa: ARG002 - click's
        formatter: click.HelpFormatter,
    ) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in COMMANDS.items()])

    def invoke(self, ctx: click.Context) -> Any:  # noqa: ANN401 - click's
        try:
            return super().invoke(ctx)
        except (TrueupError, OSError, MemoryError) as error:
            if isinstance(error, BrokenPipeError):
                raise
            from trueup.cli import _output

            _output.fail(ctx, error)
            ctx.exit(1)


def _version(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted:
        from trueup.maps._documents import this_version

        click.echo(this_version())
        ctx.exit()


@click.group(
    cls=LazyGroup,
    context_settings={
        "help_option_names": ["-h", "--help"],
        "max_content_width": _WIDTH,
    },
    epilog="Every command explains itself: trueup fit --help.",
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_version,
    help="Show the version and exit.",
)
def group() -> None:
    """Calibrate a strong model without labels, against a reference you trust.

    \b
    trueup fit strong.csv trusted.csv -o map.json --report report.html
    trueup apply map.json new.csv -o better.csv

    Results go to standard output, everything else to standard error. Exit codes: 0
    done, 1 the input was refused, 2 wrong usage.
    """


def main() -> None:
    """Run the command line."""
    # A file name or an outcome may hold any character; a terminal that cannot show
    # one shows its number instead of failing.
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")
    group(prog_name="trueup")
