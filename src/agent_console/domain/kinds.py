"""Listed values that are columns but no state machines."""

from enum import StrEnum


class UserKind(StrEnum):
    HUMAN = "human"
    SYSTEM = "system"


class HumanRole(StrEnum):
    ADMIN = "admin"
    OPERATOR = "operator"
    VIEWER = "viewer"


class PauseMode(StrEnum):
    DRAIN = "drain"
    QUIESCE = "quiesce"


class CredentialLocation(StrEnum):
    SERVER = "server"
    AGENT = "agent"
    PENDING = "pending"


class StorageKind(StrEnum):
    LOCAL = "local"
    S3 = "s3"
    GCS = "gcs"
    SMB = "smb"


class EventLevel(StrEnum):
    INFO = "info"
    WARN = "warn"
    ERROR = "error"


class ParentKind(StrEnum):
    REFRESH = "refresh"
    RETRY = "retry"


class Visibility(StrEnum):
    PRIVATE = "private"
    SHARED = "shared"


class ParticipantType(StrEnum):
    HUMAN = "human"
    AGENT = "agent"


class ActorType(StrEnum):
    HUMAN = "human"
    AGENT = "agent"
    SYSTEM = "system"


class RoutePolicy(StrEnum):
    ALLOWED = "allowed"
    BLOCKED = "blocked"
    REQUIRES_HUMAN_APPROVAL = "requires_human_approval"


class Decision(StrEnum):
    ALLOW = "allow"
    BLOCK = "block"
    ERROR = "error"
