"""Addresses mean to libpq what they mean here, and never show their secrets."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from psycopg.conninfo import conninfo_to_dict
from pydantic import SecretStr

from agent_console.config.dsn import address, has_password, redacted, understood, with_password

PASSWORDS = st.text(st.characters(min_codepoint=32, max_codepoint=0x2FF, exclude_categories=["Cc"]), min_size=1)


@pytest.mark.parametrize(
    ("dsn", "shown"),
    [
        ("postgresql://u:canary@h/db", "postgresql://u:***@h/db"),
        (
            "postgres://u@h:5432,[::1]:5433/db?sslmode=require",
            "postgres://u@h:5432,[::1]:5433/db?sslmode=require",
        ),
        ("postgresql:///db?host=/run/pg&password=canary", "postgresql:///db?host=/run/pg&password=***"),
        ("postgresql://h/db?pass%77ord=canary", "postgresql://h/db?password=***"),
        ("postgresql://u:@h/db", "postgresql://u:***@h/db"),
        ("host=h password=canary dbname=db", "host=h password=*** dbname=db"),
        (r"host=h password = 'can\'t canary' user=u", "host=h password=*** user=u"),
        ("host=h sslpassword=canary", "host=h sslpassword=***"),
        ("host=h oauth_client_secret=canary", "host=h oauth_client_secret=***"),
        (
            "host=h scram_client_key=canary scram_server_key=canary",
            "host=h scram_client_key=*** scram_server_key=***",
        ),
        ("host=h PASSWORD=canary", "host=h PASSWORD=***"),
        ("host=h passwd=canary pasword=canary", "host=h passwd=*** pasword=***"),
        ("host=h pgpwd=canary PW=canary", "host=h pgpwd=*** PW=***"),
        ("host=h auth_token=canary", "host=h auth_token=***"),
        ("postgresql://h/db?Pass=canary", "postgresql://h/db?Pass=***"),
        ("host=h passfile=/etc/pass sslkey=/k", "host=h passfile=/etc/pass sslkey=/k"),
        ("no address, canary", "***"),
    ],
)
def test_an_address_is_shown_without_its_secrets(dsn: str, shown: str) -> None:
    assert redacted(dsn) == shown


@pytest.mark.parametrize(
    "dsn",
    [
        "",
        "canary",
        "mysql://h/db",
        "postgresql+psycopg://h/db",
        "postgresql://u:canary",
        "postgresql://u:12?canary",
        "postgresql://u:can@ary@h/db",
        "postgresql://u:12/canary@h/db",
        "postgresql://u:can/ary@h/db",
        "postgresql://u:12?canary@h/db",
        "postgresql://u:12?can=ary@h/db",
        "postgresql://u:can#ary@h/db",
        "postgresql://u:can:ary@h/db",
        "host=h password='canary",
        "host=h password=can ary",
    ],
)
def test_what_could_be_cut_in_the_wrong_place_is_not_an_address(dsn: str) -> None:
    assert not understood(dsn)


@pytest.mark.parametrize(
    ("dsn", "host_and_database"),
    [
        ("postgresql://u:canary@h:5432/db?sslmode=require", "h:5432/db"),
        ("postgresql:///db?host=/run/pg", "/run/pg/db"),
        ("postgresql://", "localhost"),
        ("service=fleet-prod", "fleet-prod"),
        ("host='h' port=5433 dbname=db password=canary", "h:5433/db"),
    ],
)
def test_an_address_has_a_short_form_for_the_header(dsn: str, host_and_database: str) -> None:
    assert address(dsn) == host_and_database


@pytest.mark.parametrize(
    "dsn",
    [
        "postgresql://ana@db/fleet",
        "postgresql://ana:old@db/fleet?sslmode=require",
        "postgresql://db/fleet?user=ana&password=old",
        "host=db user='ana' dbname=fleet password=old",
    ],
)
@settings(max_examples=30, deadline=None)
@given(password=PASSWORDS)
def test_libpq_reads_back_the_password_that_was_put_in(dsn: str, password: str) -> None:
    before = {**conninfo_to_dict(dsn), "password": password}

    completed = with_password(SecretStr(dsn), SecretStr(password), keep_own=False).get_secret_value()

    assert conninfo_to_dict(completed) == before
    assert understood(completed)
    assert has_password(completed)


def test_an_address_may_keep_its_own_password() -> None:
    own = SecretStr("postgresql://ana:own@db/fleet")

    kept = with_password(own, SecretStr("other"), keep_own=True)

    assert kept == own
