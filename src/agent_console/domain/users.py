"""People and the system users of agents: who they are and what role they have."""

from typing import Annotated, ClassVar

from pydantic import Field

from agent_console.domain.agent_changes import Reason
from agent_console.domain.ids import UserId
from agent_console.domain.kinds import HumanRole, UserKind
from agent_console.domain.records import Instant, NotBlank, PageRequest, Record, Request

Email = Annotated[str, Field(max_length=320, pattern=r"^[^@\s]+@[^@\s]+$", examples=["mia@example.com"])]
FullName = Annotated[str, Field(min_length=1, max_length=300), NotBlank]
Subject = Annotated[str, Field(min_length=1, max_length=255), NotBlank]


class User(Record):
    """A person with a role, or the system user an agent acts as, which has none."""

    columns: ClassVar[tuple[str, ...]] = ("id", "kind", "role", "full_name", "email", "is_active", "last_seen_at")

    id: UserId
    kind: UserKind
    role: HumanRole | None
    subject: str | None = Field(description="The name the identity provider knows the person by.")
    email: str | None
    full_name: str
    is_active: bool
    last_seen_at: Instant | None
    created_by_user_id: UserId | None
    created_by: str | None
    updated_by_user_id: UserId | None
    updated_by: str | None
    created_at: Instant
    updated_at: Instant


class UserQuery(PageRequest):
    """The users of the team, oldest first."""

    kind: UserKind | None = Field(None, description="Only people, or only the system users of agents.")
    role: HumanRole | None = Field(None, description="Only people with this role.")


class UserAsked(Request):
    user_id: UserId


class NewUser(Request):
    email: Email = Field(description="An address; one person each, whatever its case.")
    full_name: FullName = Field(description="What people call them.")
    role: HumanRole = Field(description="What they may do.")
    subject: Subject | None = Field(None, description="Their name at the identity provider.")


class UserRole(Request):
    user_id: UserId
    role: HumanRole = Field(description="What they may do from now on.")


class UserDeactivation(Request):
    user_id: UserId
    reason: Reason = Field(description="Why, for the audit trail.")


class KnownPerson(Request):
    """Somebody as the identity provider describes them at a login."""

    subject: Subject = Field(description="Their name at the identity provider; it never changes.")
    email: Email = Field(description="Their address now.")
    full_name: FullName = Field(description="What people call them now.")
