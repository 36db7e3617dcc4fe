"""From one thing to those that belong to it: the same key leads to the same kind of thing everywhere.

Small letters lead to lists of one thing, capitals to one other thing.
"""

from textual.binding import Binding

LISTS: dict[str, tuple[str, str]] = {
    "jobs": ("w", "Its jobs"),
    "sessions": ("s", "Its sessions"),
    "runs": ("v", "Its runs"),
    "trail": ("l", "Its audit trail"),
}
THINGS: dict[str, tuple[str, str]] = {
    "agents": ("A", "Its agent"),
    "jobs": ("J", "Its job"),
    "threads": ("T", "Its thread"),
    "runs": ("U", "Its run"),
    "routes": ("R", "Its route"),
    "approvals": ("P", "Its approval"),
}


def related_bindings(where: str, *, shown: bool) -> list[Binding]:
    lists = [
        Binding(key, f"below('{name}')", words, id=f"{where}.{name}", show=shown)
        for name, (key, words) in LISTS.items()
    ]
    things = [
        Binding(key, f"jump('{noun}')", words, id=f"{where}.to_{noun}", show=False)
        for noun, (key, words) in THINGS.items()
    ]
    return lists + things
