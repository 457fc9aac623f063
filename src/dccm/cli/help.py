"""What `dccm` alone and `dccm -h` say."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from typer import BadParameter
from typer.core import TyperGroup

from dccm.cli.interruption import stop_with
from dccm.errors import UserError, short, visible

WELCOME = """\
dccm groups unlabelled images into clusters. Three things people do:

  dccm cluster photos/ -k 12 -o clusters     group the images of a folder; -k auto chooses how many
  dccm serve clusters                        look at the clusters; name, merge, move, undo
  dccm predict clusters new-photos/ -o new   put later images into them

"dccm demo" shows it on handwritten digits, in a minute or two.
"dccm -h" lists all commands, "dccm cluster -h" what one of them takes.
"""

_UsageError: Any = BadParameter.__mro__[1]
"""Of all that the parser refuses; Typer names no other of its kind."""
_GROUPS = {
    "From images to clusters": ("cluster", "predict", "demo", "choose-k", "prepare", "embed"),
    "Look and correct": ("serve", "corrections", "export", "report", "judge", "compare", "evaluate", "probe"),
    "Choose from": ("methods", "presets", "encoders", "datasets"),
}
_OTHERS = "More"


class GroupedCommands(TyperGroup):
    """Lists commands by what people want of them; those that no group names come last.

    What the parser says of a word that it does not know is a sentence as all others: of an end, and acting on nothing.
    """

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:
        """Read the words before the command's own."""
        with _in_a_sentence():
            return super().make_context(info_name, args, parent, **extra)

    def invoke(self, ctx: Any) -> Any:
        """Read the words of the command, and do it."""
        try:
            with _in_a_sentence():
                return super().invoke(ctx)
        except KeyboardInterrupt:  # Of a command that says nothing else of it, or before it began.
            stop_with()

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write a section for each group."""
        for title, names in _grouped(self.list_commands(ctx)):
            commands = {name: self.commands[name] for name in names}
            wide = formatter.width - 6 - max(map(len, self.commands))
            with formatter.section(title):
                formatter.write_dl([(name, command.get_short_help_str(wide)) for name, command in commands.items()])


@contextmanager
def _in_a_sentence() -> Iterator[None]:
    try:
        yield
    except _UsageError as error:
        error.message = str(UserError(error.message))
        if hasattr(error, "option_name"):
            error.option_name = short(visible(error.option_name))
        raise


def _grouped(names: list[str]) -> Iterator[tuple[str, list[str]]]:
    named = {name for group in _GROUPS.values() for name in group}
    for title, group in _GROUPS.items():
        yield title, [name for name in group if name in names]
    yield _OTHERS, [name for name in names if name not in named]
