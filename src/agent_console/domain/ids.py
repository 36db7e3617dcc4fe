"""Typed ids: a UUIDv7 inside, `prefix_` and 26 Crockford characters outside.

An id is a `uuid.UUID`, so the database driver takes it as it is; its text form is the one people see. Text
order is creation order. Reading accepts any case; writing is always lower case.
"""

from typing import TYPE_CHECKING, Any, ClassVar, Self
from uuid import UUID

from typeid.codecs.base32 import decode, encode
from uuid_utils.compat import uuid7

from agent_console.domain.errors import WrongId

if TYPE_CHECKING:
    from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
    from pydantic.json_schema import JsonSchemaValue
    from pydantic_core import CoreSchema

ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
SUFFIX_LENGTH = 26

KINDS: dict[str, type["Id"]] = {}


class Id(UUID):
    """One kind of id. Subclasses name their prefix and, for errors, what they identify."""

    __slots__ = ()
    prefix: ClassVar[str] = ""
    noun: ClassVar[str] = ""

    def __init_subclass__(cls, *, prefix: str, noun: str) -> None:
        cls.prefix = prefix
        cls.noun = noun
        KINDS[prefix] = cls

    @classmethod
    def new(cls) -> Self:
        return cls(int=uuid7().int)

    @classmethod
    def of(cls, value: UUID) -> Self:
        return cls(int=value.int)

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read the shown form; the error names the prefix that was expected."""
        prefix, separator, suffix = text.strip().lower().rpartition("_")
        if not separator:
            raise cls._wrong(text, f"it has no prefix, {cls.noun} id starts with {cls.prefix}_")
        if prefix != cls.prefix:
            known = KINDS.get(prefix)
            what = f"{prefix}_ is {known.noun}" if known else f"{prefix[:12]!a} is no known prefix"
            raise cls._wrong(text, f"{what}, {cls.noun} id starts with {cls.prefix}_")
        if len(suffix) != SUFFIX_LENGTH:
            raise cls._wrong(text, f"{SUFFIX_LENGTH} characters follow {cls.prefix}_, not {len(suffix)}")
        if strange := next((c for c in suffix if c not in ALPHABET), None):
            raise cls._wrong(text, f"{strange!a} is not used in ids (no i, l, o, u)")
        if suffix[0] > "7":
            raise cls._wrong(text, f"the first character after {cls.prefix}_ is 0 to 7")
        return cls(bytes=bytes(decode(suffix)))

    @classmethod
    def _wrong(cls, text: str, why: str) -> WrongId:
        shown = ascii(text[:60])
        return WrongId(
            f"{shown} is not {cls.noun} id: {why}.",
            hint=f"Expected {cls.prefix}_ and {SUFFIX_LENGTH} characters.",
            details={"expected_prefix": f"{cls.prefix}_"},
        )

    def __str__(self) -> str:
        return f"{self.prefix}_{encode(self.bytes)}"

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Id) and type(other) is not type(self):
            return False
        return super().__eq__(other)

    __hash__ = UUID.__hash__

    @classmethod
    def _validate(cls, value: object) -> Self:
        if isinstance(value, cls):
            return value
        if isinstance(value, str):
            return cls.parse(value)
        if isinstance(value, UUID) and not isinstance(value, Id):
            return cls.of(value)
        raise ValueError(f"expected {cls.noun} id ({cls.prefix}_…)")

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: "GetCoreSchemaHandler") -> "CoreSchema":
        from pydantic_core import core_schema

        return core_schema.no_info_plain_validator_function(
            cls._validate, serialization=core_schema.to_string_ser_schema()
        )

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: "CoreSchema", handler: "GetJsonSchemaHandler"
    ) -> "JsonSchemaValue":
        return {
            "type": "string",
            "title": cls.__name__,
            "pattern": f"^{cls.prefix}_[0-7][0-9a-hjkmnp-tv-z]{{25}}$",
            "examples": [f"{cls.prefix}_01h455vb4pex5vsknk084sn02q"],
        }


class TeamId(Id, prefix="tea", noun="a team"):
    __slots__ = ()


class UserId(Id, prefix="usr", noun="a user"):
    __slots__ = ()


class AgentId(Id, prefix="agt", noun="an agent"):
    __slots__ = ()


class RegistrationTokenId(Id, prefix="art", noun="a registration token"):
    __slots__ = ()


class WorkerTokenId(Id, prefix="wkt", noun="a worker token"):
    __slots__ = ()


class OperatorTokenId(Id, prefix="opt", noun="an operator token"):
    __slots__ = ()


class ConnectorId(Id, prefix="con", noun="a connector"):
    __slots__ = ()


class CollectionId(Id, prefix="col", noun="a collection"):
    __slots__ = ()


class JobId(Id, prefix="job", noun="a job"):
    __slots__ = ()


class JobEventId(Id, prefix="jev", noun="a job event"):
    __slots__ = ()


class ResultId(Id, prefix="res", noun="a result"):
    __slots__ = ()


class ThreadId(Id, prefix="thr", noun="a thread"):
    __slots__ = ()


class ParticipantId(Id, prefix="par", noun="a participant"):
    __slots__ = ()


class MessageId(Id, prefix="msg", noun="a message"):
    __slots__ = ()


class RunId(Id, prefix="run", noun="a run"):
    __slots__ = ()


class RouteId(Id, prefix="rte", noun="a route"):
    __slots__ = ()


class ApprovalId(Id, prefix="apr", noun="an approval"):
    __slots__ = ()


class SessionId(Id, prefix="ses", noun="a session"):
    __slots__ = ()


class AuditId(Id, prefix="aud", noun="an audit row"):
    __slots__ = ()


class LaneId(Id, prefix="lan", noun="a lane"):
    __slots__ = ()


class CheckpointId(Id, prefix="chk", noun="a checkpoint"):
    __slots__ = ()
