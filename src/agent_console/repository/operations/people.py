"""People: who belongs to the team with which role, and what the team has set."""

from agent_console.domain.audit import audit_action
from agent_console.domain.permissions import Permission
from agent_console.domain.records import Nothing, Page
from agent_console.domain.team_settings import Setting, SettingChange
from agent_console.domain.users import KnownPerson, NewUser, User, UserAsked, UserDeactivation, UserQuery, UserRole
from agent_console.repository.operations.declared import AnyOperation, Operation, Verb

USER_CREATED = audit_action("user.create", "role")
USER_PUT = audit_action("user.put", "changed", "role")
USER_DEACTIVATED = audit_action("user.deactivate", "closed_sessions")
USER_ACTIVATED = audit_action("user.activate", "role")
ROLE_GRANTED = audit_action("rbac.role.grant", "old", "new")
ROLE_REVOKED = audit_action("rbac.role.revoke", "old", "new")
CONFIG_CHANGED = audit_action("config.change", "name", "old", "new")

USERS_LIST = Operation(
    name="users.list",
    summary="The people of the team and the system users of its agents, oldest first.",
    verb=Verb.GET,
    path="/v1/users",
    request=UserQuery,
    answer=Page[User],
    permission=Permission.SEE_FLEET,
)
USERS_GET = Operation(
    name="users.get",
    summary="One user, whole.",
    verb=Verb.GET,
    path="/v1/users/{user_id}",
    request=UserAsked,
    answer=User,
    permission=Permission.SEE_FLEET,
)
USERS_CREATE = Operation(
    name="users.create",
    summary="Add a person to the team.",
    verb=Verb.POST,
    path="/v1/users",
    request=NewUser,
    answer=User,
    permission=Permission.ADMINISTER,
    audit=USER_CREATED,
    created=True,
)
USERS_PUT = Operation(
    name="users.put",
    summary="Keep a person as the identity provider describes them; a new one becomes a viewer.",
    verb=Verb.PUT,
    path="/v1/users/by-subject",
    request=KnownPerson,
    answer=User,
    permission=Permission.ADMINISTER,
    audit=USER_PUT,
)
# Raising a role is written as rbac.role.grant, lowering one as rbac.role.revoke.
USERS_SET_ROLE = Operation(
    name="users.set_role",
    summary="Give a person another role.",
    verb=Verb.PUT,
    path="/v1/users/{user_id}/role",
    request=UserRole,
    answer=User,
    permission=Permission.ADMINISTER,
    audit=ROLE_GRANTED,
    danger=True,
)
USERS_DEACTIVATE = Operation(
    name="users.deactivate",
    summary="Block a person: tokens stop working at once and sessions are closed.",
    verb=Verb.POST,
    path="/v1/users/{user_id}/deactivate",
    request=UserDeactivation,
    answer=User,
    permission=Permission.ADMINISTER,
    audit=USER_DEACTIVATED,
    danger=True,
)
USERS_ACTIVATE = Operation(
    name="users.activate",
    summary="Let a blocked person in again.",
    verb=Verb.POST,
    path="/v1/users/{user_id}/activate",
    request=UserAsked,
    answer=User,
    permission=Permission.ADMINISTER,
    audit=USER_ACTIVATED,
)
SETTINGS_LIST = Operation(
    name="settings.list",
    summary="What the team can set, with its values now.",
    verb=Verb.GET,
    path="/v1/settings",
    request=Nothing,
    answer=Page[Setting],
    permission=Permission.SEE_FLEET,
)
SETTINGS_SET = Operation(
    name="settings.set",
    summary="Give a setting another value.",
    verb=Verb.PUT,
    path="/v1/settings/{name}",
    request=SettingChange,
    answer=Setting,
    permission=Permission.ADMINISTER,
    audit=CONFIG_CHANGED,
)

NOUNS = {
    "users": "The people of the team and their roles.",
    "settings": "What the team has set.",
}

PEOPLE: tuple[AnyOperation, ...] = (
    USERS_LIST,
    USERS_GET,
    USERS_CREATE,
    USERS_PUT,
    USERS_SET_ROLE,
    USERS_DEACTIVATE,
    USERS_ACTIVATE,
    SETTINGS_LIST,
    SETTINGS_SET,
)
