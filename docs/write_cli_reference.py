"""Write reference/cli.md from the help of every command.

    python docs/write_cli_reference.py

A test compares the page with what this prints.
"""

from __future__ import annotations

import sys
from pathlib import Path

import click

from trueup.cli.main import COMMANDS, group

PAGE = Path(__file__).parent / "reference" / "cli.md"
WIDTH = 88
HEAD = """\
# The command line

Generated from the help of each command by `docs/write_cli_reference.py`.

Results go to standard output; what was read and chosen, progress and warnings go to
standard error. Every command takes `--json` and then prints
[one JSON object](cli-json.md). Exit codes: 0 done, 1 the input was refused (with a
message that says what to do next, and nothing written), 2 wrong usage.

Shell completion is click's. For bash, zsh and fish:

```bash
eval "$(_TRUEUP_COMPLETE=bash_source trueup)"   # in ~/.bashrc
eval "$(_TRUEUP_COMPLETE=zsh_source trueup)"    # in ~/.zshrc
_TRUEUP_COMPLETE=fish_source trueup | source    # in ~/.config/fish/config.fish
```

The schema of [prediction files](prediction-files.md) is the same for every command.
"""


def page() -> str:
    """The whole page."""
    context = click.Context(
        group,
        info_name="trueup",
        terminal_width=WIDTH,
        max_content_width=WIDTH,
        help_option_names=["-h", "--help"],
    )
    parts = [HEAD, _block(group.get_help(context))]
    for name in COMMANDS:
        command = group.get_command(context, name)
        if command is None:
            continue
        inner = click.Context(
            command,
            info_name=name,
            parent=context,
            terminal_width=WIDTH,
            max_content_width=WIDTH,
            help_option_names=["-h", "--help"],
        )
        parts.append(f"\n## trueup {name}\n\n{_block(command.get_help(inner))}")
    return "".join(parts)


def _block(text: str) -> str:
    lines = "\n".join(line.rstrip() for line in text.rstrip().splitlines())
    return f"\n```text\n{lines}\n```\n"


if __name__ == "__main__":
    if "--print" in sys.argv:
        sys.stdout.write(page())
    else:
        PAGE.write_text(page(), encoding="utf-8")
