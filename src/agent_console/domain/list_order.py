"""From which end a list is read."""

from enum import StrEnum


class ListOrder(StrEnum):
    NEWEST = "newest"
    OLDEST = "oldest"
