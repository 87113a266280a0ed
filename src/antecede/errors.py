"""Every error that antecede raises on purpose.

    AntecedeError
    ├── InputError            a file, a table or an argument from outside is not usable
    │   ├── FormatError       the format cannot be told, or the text does not follow it
    │   ├── CycleError        declared causes form a cycle
    │   ├── ScenarioError     a scenario of the simulator does not parse or asks for the impossible
    │   ├── ScriptError       the same of a script of the checker
    │   └── OptionError       a protocol has no such option, or its text has the wrong type
    ├── ProtocolError         a rule of message exchange was broken ...
    │   ├── LocalError        ... by the caller: our own code called us wrongly
    │   │   └── EarlyError        ... too early: a newcomer must wait before its first message
    │   └── RemoteError       ... by the other side: what arrived is malformed or impossible
    │       ├── DecodeError           bytes do not decode
    │       │   └── MismatchError     ... of another room, order, options or list of members
    │       ├── UnknownMemberError    control information names a member not in the group
    │       ├── SequenceError         a sequence number that cannot be (too far, after a leave)
    │       │   ├── IncarnationError  ... its sender began anew, and numbers of two lives meet
    │       │   └── ConflictError     ... it is known, with other content
    │       └── LimitError            it would exceed a limit of the group; nothing was taken in
    ├── StoreError            what a live peer keeps cannot be written, or read, or is another's
    ├── PeerError             a live peer cannot go on: put out, refused, or without a majority
    └── SetupError            something this machine would need is not there
        └── MissingExtraError     an optional dependency is not installed

A `RemoteError` never changes the state of the protocol that raises it: the message is
refused whole, and good messages go on.
"""

from __future__ import annotations


class AntecedeError(Exception):
    """Base of all errors raised on purpose by antecede."""


class InputError(AntecedeError):
    """Input from outside is not usable; says where (path, line, id) and what to do."""

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
    """The format of a file cannot be told, or its text does not follow that format."""


class CycleError(InputError):
    """Declared causes form a cycle: no order puts every cause before its effect."""


class ScenarioError(InputError):
    """A scenario of the simulator does not parse, or asks for something that cannot happen."""


class ScriptError(InputError):
    """A script of the checker does not parse, or asks for something that cannot happen."""


class OptionError(InputError):
    """A protocol has no such option, or the text of an option is not of its type."""


class ProtocolError(AntecedeError):
    """A rule of the message exchange was broken."""


class LocalError(ProtocolError):
    """Our own side called a protocol in a way that it does not allow."""


class EarlyError(LocalError):
    """A newcomer sends too early; `from_ns` is the reading of its clock from which on it may.

    None: the group was told no time yet.
    """

    def __init__(self, message: str, *, from_ns: int | None = None) -> None:
        self.from_ns = from_ns
        super().__init__(message)


class RemoteError(ProtocolError):
    """What arrived from another member is malformed or impossible."""


class DecodeError(RemoteError):
    """Bytes from another member do not decode."""


class UnknownMemberError(RemoteError):
    """Control information from another member names a member that is not in the group."""


class SequenceError(RemoteError):
    """A sequence number from another member that cannot be."""


class MismatchError(DecodeError):
    """Bytes of another group or sender.

    `differs` is "order", "room", "options", "group", "members", "kind" or "sender".
    """

    def __init__(self, differs: str, message: str) -> None:
        self.differs = differs
        super().__init__(message)


class IncarnationError(SequenceError):
    """Messages of two lives of one member meet: it was restored from too old a snapshot, or anew.

    Nothing of it is taken for something else; the text says which member and which numbers.
    `member`: that member.
    """

    def __init__(self, message: str, member: str = "") -> None:
        self.member = member
        super().__init__(message)


class ConflictError(SequenceError):
    """A message with a number that is known, and with other content."""


class LimitError(RemoteError):
    """A message that would exceed a limit: offer it again later, or raise the limit.

    It was not taken in, and nothing that is here was given up for it.
    """


class StoreError(AntecedeError):
    """A live peer's store cannot be opened, written or read; says which file and what to do."""


class PeerError(AntecedeError):
    """A live peer is in no group, was refused or put out, or is cut off from the majority."""


class BufferFullError(PeerError):
    """A peer keeps as many bytes of unsent or unacknowledged messages as its `memory` allows."""


class SetupError(AntecedeError):
    """Something that this machine would need is not there; says how to get it."""


class MissingExtraError(SetupError):
    """An optional dependency is not installed; names the extra that brings it."""

    def __init__(self, what: str, extra: str) -> None:
        self.extra = extra
        super().__init__(f"{what} needs an extra: pip install 'antecede[{extra}]'")
