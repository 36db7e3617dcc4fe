"""How often the schema is looked at: once for many answers, again in time, and always while it is wrong."""

import pytest

from agent_console.domain.errors import SchemaMismatch
from agent_console.repository.postgres.database import Database
from agent_console.repository.postgres.schema_watch import SchemaWatch
from tests.support.fleet import Fleet


async def reached(database: Database) -> None:
    async with database.reading():
        pass


def contract(fleet: Fleet) -> None:
    fleet.execute("delete from schema_fits")
    fleet.execute("update alembic_version set version_num = '9999'")


async def test_a_look_is_remembered_until_it_is_due_and_a_wrong_schema_is_not(fleet: Fleet) -> None:
    patient, eager = Database(fleet.working), Database(fleet.working)
    eager.schema = SchemaWatch(look_again_seconds=0)
    await reached(patient)
    await reached(eager)

    contract(fleet)
    await reached(patient)
    with pytest.raises(SchemaMismatch):
        await reached(eager)
    patient.schema.forget()
    with pytest.raises(SchemaMismatch):
        await reached(patient)
    fleet.execute("insert into schema_fits (revision) values ('0005')")
    await reached(patient)

    assert (patient.schema.is_due, eager.schema.is_due) == (False, True)
    await patient.close()
    await eager.close()


async def test_what_is_missing_in_the_schema_makes_the_next_one_look(fleet: Fleet) -> None:
    database = Database(fleet.working)
    await reached(database)

    async def asked() -> None:
        async with database.reading() as connection:
            await connection.exec_driver_sql("select nickname from agents")

    with pytest.raises(SchemaMismatch):
        await database.within_time(asked())

    assert database.schema.is_due
    await database.close()
