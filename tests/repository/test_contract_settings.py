"""What the team has set, through both repositories."""

import asyncio

import pytest

from agent_console.domain.errors import Invalid, NotFound
from agent_console.domain.records import Nothing
from agent_console.domain.team_settings import MAX_HOPS, SETTINGS, Setting, SettingChange
from agent_console.repository.operations.people import SETTINGS_LIST, SETTINGS_SET
from agent_console.repository.port import Repository
from agent_console.repository.postgres.database import Database
from agent_console.repository.postgres.team_settings import setting_value
from tests.repository.conftest import VIEWER, OpenRepository
from tests.support.fleet import Fleet


async def listed(repository: Repository) -> dict[str, Setting]:
    return {setting.name: setting for setting in (await repository.call(SETTINGS_LIST, Nothing())).items}


async def test_what_nobody_set_has_its_default(open_repository: OpenRepository) -> None:
    viewer = await open_repository(VIEWER)

    found = await listed(viewer)

    assert {name: setting.value for name, setting in found.items()} == {
        "audit_retention_days": 90,
        "job_history_days": 90,
        "approval_expiry_minutes": 1440,
        "max_hops": 2,
        "duplicate_window_seconds": 45,
        "runs_per_thread": 3,
        "waiting_per_agent": 20,
        "lease_max_seconds": 3600,
        "hosted_per_owner": 10,
    }
    assert all(setting.updated_by is None and setting.help for setting in found.values())


@pytest.mark.rule("U002-6", "U000-49")
async def test_setting_one_is_kept_and_tells_the_audit_both_values(repository: Repository, fleet: Fleet) -> None:
    changed = await repository.call(SETTINGS_SET, SettingChange(name="max_hops", value=4))

    assert (changed.value, changed.default, changed.updated_by) == (4, 2, "Ana Costa")
    assert (await listed(repository))["max_hops"] == changed
    assert fleet.execute("select action, resource_id, metadata from audit_log") == [
        ("config.change", "max_hops", {"name": "max_hops", "old": 2, "new": 4})
    ]


async def test_the_same_value_again_changes_nothing(repository: Repository, fleet: Fleet) -> None:
    await repository.call(SETTINGS_SET, SettingChange(name="max_hops", value=2))

    assert fleet.one("select count(*) from settings") == 0
    assert fleet.one("select count(*) from audit_log") == 0


async def test_both_bounds_of_every_setting_are_kept(repository: Repository) -> None:
    for rule in SETTINGS.values():
        for value in (rule.minimum, rule.maximum):
            kept = await repository.call(SETTINGS_SET, SettingChange(name=rule.name, value=value))
            assert kept.value == value, rule.name
        for value in (rule.minimum - 1, rule.maximum + 1):
            with pytest.raises(Invalid) as refused:
                await repository.call(SETTINGS_SET, SettingChange(name=rule.name, value=value))
            assert "value" in str(refused.value.details["fields"])

    values = {name: setting.value for name, setting in (await listed(repository)).items()}
    assert values == {rule.name: rule.maximum for rule in SETTINGS.values()}


async def test_an_undeclared_setting_is_not_found(repository: Repository, fleet: Fleet) -> None:
    with pytest.raises(NotFound) as refused:
        await repository.call(SETTINGS_SET, SettingChange(name="log_level", value=1))

    assert "audit_retention_days" in refused.value.hint
    assert fleet.one("select count(*) from settings") == 0


def test_true_is_no_number() -> None:
    with pytest.raises(ValueError, match="whole number"):
        SettingChange.model_validate({"name": "max_hops", "value": True})


async def test_the_audit_of_simultaneous_changes_has_no_gap(repository: Repository, fleet: Fleet) -> None:
    values = (3, 4, 5, 6)

    await asyncio.gather(
        *(repository.call(SETTINGS_SET, SettingChange(name="max_hops", value=value)) for value in values)
    )

    steps = fleet.execute("select metadata -> 'old', metadata -> 'new' from audit_log order by seq")
    assert [old for old, _ in steps] == [2, *(new for _, new in steps[:-1])]
    assert {new for _, new in steps} == set(values)


async def test_whoever_keeps_a_rule_reads_its_value_of_the_team(repository: Repository, fleet: Fleet) -> None:
    await repository.call(SETTINGS_SET, SettingChange(name="max_hops", value=7))
    other = fleet.add_team("other")
    database = Database(fleet.working)

    async with database.reading() as connection:
        ours = await setting_value(connection, fleet.team_id(), MAX_HOPS)
        theirs = await setting_value(connection, other, MAX_HOPS)
    await database.close()

    assert (ours, theirs) == (7, 2)
