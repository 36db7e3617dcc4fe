"""A team on one's own PostgreSQL: made once by whoever may migrate, with somebody who can let in the others."""

import pytest

from agent_console.database.first_team import add_team
from agent_console.database.roles import APP, with_role
from agent_console.domain.errors import Conflict, Invalid, SchemaMismatch
from agent_console.domain.permissions import Role
from agent_console.domain.records import Nothing
from agent_console.domain.users import NewUser
from agent_console.repository.operations import ME
from agent_console.repository.operations.people import USERS_CREATE
from agent_console.repository.postgres.repository import open_direct
from tests.support.clusters import Cluster


async def test_its_administrator_can_let_in_others(database: str) -> None:
    add_team(database, "payments", "Payments", "ana@example.com", "Ana")

    async with open_direct(with_role(database, APP), team="payments", user="ana@example.com") as ana:
        me = await ana.call(ME, Nothing())
        mia = await ana.call(USERS_CREATE, NewUser(email="mia@example.com", full_name="Mia", role=Role.OPERATOR))

    assert (me.team, me.role) == ("payments", "admin")
    assert mia.email == "mia@example.com"


def test_a_team_is_made_once(database: str) -> None:
    add_team(database, "payments", "Payments", "ana@example.com", "Ana")

    with pytest.raises(Conflict, match="There is a team payments already"):
        add_team(database, "payments", "Payments", "eve@example.com", "Eve")


@pytest.mark.parametrize(("slug", "email"), [("No Such Name", "ana@example.com"), ("payments", " ")])
def test_what_the_database_does_not_take_is_one_sentence(database: str, slug: str, email: str) -> None:
    with pytest.raises(Invalid, match="can't be called that"):
        add_team(database, slug, "Payments", email, "Ana")


def test_a_database_that_was_not_migrated_is_told_as_such(database: str, postgres: Cluster) -> None:
    with pytest.raises(SchemaMismatch, match="has no agent-console schema yet") as refused:
        add_team(postgres.dsn(), "payments", "Payments", "ana@example.com", "Ana")

    assert refused.value.hint == "Run: agent-console db migrate"
