"""`agent-console keys`: every key of the console, where it works, and what is wrong with a keymap."""

from typing import TYPE_CHECKING

from agent_console.cli.keys_file import keymap_of
from agent_console.cli.output import OutputForm, TableColumn, emit, narrate

if TYPE_CHECKING:
    from agent_console.config import Settings

COLUMNS: list[TableColumn[dict[str, object]]] = [
    TableColumn("id", lambda row: str(row["id"])),
    TableColumn("keys", lambda row: str(row["keys"])),
    TableColumn("where", lambda row: str(row["where"])),
    TableColumn("does", lambda row: str(row["does"])),
    TableColumn("changed", lambda row: "yes" if row["changed"] else ""),
]


def print_keys(settings: "Settings", output: OutputForm) -> int:
    """0 when every key does one thing, 1 when the keymap has a mistake in it."""
    from agent_console.tui.keymap import every_key, keymap_problems, remapped

    keymap = keymap_of(settings)
    declared = every_key()
    rows: list[dict[str, object]] = [
        {
            "id": key.id,
            "keys": " ".join(key.keys),
            "where": key.place,
            "does": key.words,
            "changed": key.id in keymap,
        }
        for key in remapped(declared, keymap)
    ]
    emit(rows, COLUMNS, output)
    problems = keymap_problems(keymap, declared)
    for problem in problems:
        narrate(f"Warning: {problem}")
    return 1 if problems else 0
