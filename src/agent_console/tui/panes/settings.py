"""What the team has set: each value with its bounds, and who chose it."""

from dataclasses import replace
from datetime import datetime

from textual.content import Content

from agent_console.domain.spans import ago
from agent_console.domain.team_settings import Setting
from agent_console.repository.port import Topic
from agent_console.tui.agent_text import agent_text, system_text
from agent_console.tui.panes.derived import derived_kind
from agent_console.tui.widgets.virtual_table_columns import Column

COLUMNS = (
    Column("name", "Name", None, min_width=24),
    Column("value", "Value", 7, align="right"),
    Column("default", "Default", 7, align="right", drop=1),
    Column("bounds", "Bounds", 11, drop=2),
    Column("by", "Changed by", 12),
    Column("changed", "Ago", 7, align="right"),
)


def setting_cells(setting: Setting, now: datetime) -> tuple[Content, ...]:
    chosen = setting.value != setting.default
    return (
        agent_text(setting.name, limit=100),
        system_text(str(setting.value), "bold $text-accent" if chosen else ""),
        system_text(str(setting.default), "$foreground-muted"),
        system_text(f"{setting.minimum} to {setting.maximum}", "$foreground-muted"),
        agent_text(setting.updated_by or "-", "$foreground-muted", limit=60),
        system_text(ago(setting.updated_at, now), "$foreground-muted"),
    )


def setting_remark(setting: Setting) -> str:
    return f"{setting.help}\nFrom {setting.minimum} to {setting.maximum}; by default {setting.default}."


SETTINGS = replace(
    derived_kind("settings", Topic.EVERYTHING),
    columns=COLUMNS,
    cells=setting_cells,
    remark=setting_remark,
    enter_acts=True,
)
