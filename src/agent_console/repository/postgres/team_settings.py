"""What the team has set; a setting nobody touched has its default."""

from typing import Any

from sqlalchemy import Row, and_, func, select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from agent_console.database.tables import settings, teams, users
from agent_console.domain.audit import AuditEvent, Facts
from agent_console.domain.errors import Invalid, NotFound
from agent_console.domain.ids import TeamId
from agent_console.domain.records import Nothing, Page
from agent_console.domain.team_settings import SETTINGS, Setting, SettingChange, SettingRule
from agent_console.repository.operations.people import CONFIG_CHANGED, SETTINGS_LIST, SETTINGS_SET
from agent_console.repository.port import Topic
from agent_console.repository.postgres import audit
from agent_console.repository.postgres.work import Work, answers


async def setting_value(connection: AsyncConnection, team_id: TeamId, rule: SettingRule) -> int:
    """What a rule of the team is now, for whoever has to keep it."""
    return (await setting_values(connection, team_id, rule))[rule]


async def setting_values(
    connection: AsyncConnection, team_id: TeamId, *rules: SettingRule
) -> dict[SettingRule, int]:
    """Several rules in one look."""
    names = [rule.name for rule in rules]
    wanted = select(settings.c.name, settings.c.value).where(
        settings.c.team_id == team_id, settings.c.name.in_(names)
    )
    stored = {row.name: int(row.value) for row in await connection.execute(wanted)}
    return {rule: stored.get(rule.name, rule.default) for rule in rules}


async def _stored(work: Work) -> dict[str, Row[Any]]:
    changer = and_(users.c.team_id == settings.c.team_id, users.c.id == settings.c.updated_by_user_id)
    wanted = (
        select(settings, users.c.full_name.label("updated_by"))
        .select_from(settings.outerjoin(users, changer))
        .where(settings.c.team_id == work.caller.team_id)
    )
    return {row.name: row for row in (await work.connection.execute(wanted)).all()}


def _shown(rule: SettingRule, stored: Row[Any] | None) -> Setting:
    return Setting(
        name=rule.name,
        value=rule.default if stored is None else stored.value,
        default=rule.default,
        minimum=rule.minimum,
        maximum=rule.maximum,
        help=rule.help,
        updated_by_user_id=None if stored is None else stored.updated_by_user_id,
        updated_by=None if stored is None else stored.updated_by,
        updated_at=None if stored is None else stored.updated_at,
    )


@answers(SETTINGS_LIST)
async def list_settings(work: Work, request: Nothing) -> Page[Setting]:
    stored = await _stored(work)
    return Page[Setting](items=tuple(_shown(rule, stored.get(name)) for name, rule in SETTINGS.items()))


@answers(SETTINGS_SET)
async def set_setting(work: Work, change: SettingChange) -> Setting:
    rule = _rule(change)
    team_id = work.caller.team_id
    # A setting has no row before it is first set, so those who set one queue at the team's.
    queue = select(func.now()).select_from(teams).where(teams.c.id == team_id)
    at = (await work.connection.execute(queue.with_for_update(of=teams, key_share=True))).scalar_one()
    old = await setting_value(work.connection, team_id, rule)
    if old != change.value:
        new = {"value": change.value, "updated_by_user_id": work.caller.user_id, "updated_at": func.now()}
        await work.connection.execute(
            insert(settings)
            .values(new | {"team_id": team_id, "name": rule.name})
            .on_conflict_do_update(index_elements=["team_id", "name"], set_=new)
        )
        facts: Facts = {"name": rule.name, "old": old, "new": change.value}
        event = AuditEvent(action=CONFIG_CHANGED, resource_type="setting", resource_id=rule.name, metadata=facts)
        await audit.append(work, event, at)
        work.announce(Topic.EVERYTHING, team_id)
    return _shown(rule, (await _stored(work)).get(rule.name))


def _rule(change: SettingChange) -> SettingRule:
    rule = SETTINGS.get(change.name)
    if rule is None:
        raise NotFound("There is no such setting.", hint=f"There are: {', '.join(SETTINGS)}.")
    if not rule.minimum <= change.value <= rule.maximum:
        problem = f"must be {rule.minimum} to {rule.maximum}"
        raise Invalid(f"{rule.name} {problem}.", details={"fields": [{"field": "value", "problem": problem}]})
    return rule
