"""Exceptions of antecede.

    AntecedeError
    ├── InputError            a file, a table or an argument from outside is not usable
    │   ├── FormatError       the file format is unknown, or the text violates it
    │   ├── CycleError        declared causes form a cycle
    │   ├── ConfigError       a simulation config is invalid
    │   ├── ScenarioError       a scenario of the checker is invalid
    │   └── OptionError       a protocol has no such option, or its text has the wrong type
    ├── ProtocolError         a rule of message exchange was violated ...
    │   ├── LocalError        ... by the caller (h11: LocalProtocolError)
    │   │   └── EarlyError        ... a joining member must wait before its first message
    │   └── RemoteError       ... by another member (h11: RemoteProtocolError)
    │       ├── DecodeError           bytes do not decode
    │       │   └── MismatchError     ... they are of another room, order, options or member list
    │       ├── UnknownMemberError    control information names a member not in the group
    │       ├── SequenceError         impossible sequence number (too far, after a leave)
    │       │   ├── IncarnationError  ... numbers of two incarnations of the sender overlap
    │       │   └── ConflictError     ... it is known with other content
    │       └── LimitError            the message would exceed a limit of the group
    ├── StoreError            the store of a live peer is unusable
    ├── PeerError             a live peer was evicted, rejected, or is in a minority
    └── SetupError            this machine lacks a requirement
        └── MissingExtraError     an optional dependency is not installed

A `RemoteError` rejects the whole message and leaves the protocol's state unchanged.
"""

from __future__ import annotations


class AntecedeError(Exception):
    """Base class of all errors of antecede."""


class InputError(AntecedeError):
    """Unusable input: a file, a table or an argument. Names path, line and id."""

    def __init__(
        self,
        message: str,
        *,
        path: str | None = None,
        line: int | None = None,
        record_id: str | None = None,
    ) -> None:
        self.message = message
        self.path = path
        self.line = line
        self.record_id = record_id
        where = ":".join(str(part) for part in (path, line) if part is not None)
        if record_id is not None:
            where = f"{where} (id {record_id})" if where else f"id {record_id}"
        super().__init__(f"{where}: {message}" if where else message)


class FormatError(InputError):
    """The file format is unknown, or the text violates it."""


class CycleError(InputError):
    """Declared causes form a cycle."""


class ConfigError(InputError):
    """A simulation config does not parse, or describes an impossible run."""


class ScenarioError(InputError):
    """A scenario of the checker does not parse, or describes an impossible run."""


class OptionError(InputError):
    """A protocol has no such option, or the text of an option has the wrong type."""


class ProtocolError(AntecedeError):
    """A rule of message exchange was violated."""


class LocalError(ProtocolError):
    """The caller violated a rule."""


class EarlyError(LocalError):
    """A joining member sends too early; allowed from clock reading `from_ns` on (None: unknown)."""

    def __init__(self, message: str, *, from_ns: int | None = None) -> None:
        self.from_ns = from_ns
        super().__init__(message)


class RemoteError(ProtocolError):
    """Another member violated a rule: its message is malformed or impossible."""


class DecodeError(RemoteError):
    """Bytes of another member do not decode."""


class UnknownMemberError(RemoteError):
    """Control information names a member that is not in the group."""


class SequenceError(RemoteError):
    """A sequence number of another member is impossible."""


class MismatchError(DecodeError):
    """Bytes of another group: of another `field`, such as "order", "room" or "members"."""

    def __init__(self, field: str, message: str) -> None:
        self.differs = field
        super().__init__(message)


class IncarnationError(SequenceError):
    """Messages of two incarnations of `member` overlap: it was restored from too old a snapshot."""

    def __init__(self, message: str, member: str = "") -> None:
        self.member = member
        super().__init__(message)


class ConflictError(SequenceError):
    """A message has a known number and other content."""


class LimitError(RemoteError):
    """A message would exceed a limit and was not accepted: retry later, or raise the limit."""


class StoreError(AntecedeError):
    """The store of a live peer cannot be opened, written or read."""


class PeerError(AntecedeError):
    """A live peer is in no group, was rejected or evicted, or is in a minority partition."""


class BufferFullError(PeerError):
    """Unsent or unacknowledged messages of a peer exceed its `memory`."""


class SetupError(AntecedeError):
    """This machine lacks a requirement. The text has the remedy."""


class MissingExtraError(SetupError):
    """An optional dependency is not installed; `extra` provides it."""

    def __init__(self, feature: str, extra: str) -> None:
        self.extra = extra
        super().__init__(f"{feature} needs an extra: pip install 'antecede[{extra}]'")
