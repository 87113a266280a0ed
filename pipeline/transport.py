"""Topics in Kafka, or as folders of files with one JSON line per record.

Both only send records and poll the records of topics from their start. Records of one topic and key
keep their order.
"""

from __future__ import annotations

import datetime as dt
import itertools
import json
import os
import threading
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from antecede.errors import InputError, SetupError

Headers = list[tuple[str, bytes]]


class Record(NamedTuple):
    """Record of a topic."""

    topic: str
    key: str
    value: str
    headers: Headers


class Transport(Protocol):
    """Interface of topics for services and courier; `send` is thread-safe."""

    def send(self, record: Record) -> None:
        """Queue a record; it is durable after `flush`."""

    def flush(self) -> None:
        """Wait until all records are durable. Raises SetupError on failure."""

    def poll(self, seconds: float) -> list[Record]:
        """Return new records, at once or after at most `seconds`."""

    def close(self) -> None:
        """Flush and close."""


def open_transport(address: str, name: str, topics: Sequence[str]) -> Transport:
    """Open `kafka:HOST:PORT` or `files:FOLDER` for the process `name`, reading `topics`."""
    kind, _, where = address.partition(":")
    if kind == "kafka":
        return KafkaTopics(where, name, topics)
    if kind == "files":
        return FileTopics(Path(where), name, topics)
    raise InputError(f"unknown address {address!r}; expected kafka:HOST:PORT or files:FOLDER")


class FileTopics:
    """Topics as folders; a flush creates one file by a rename."""

    def __init__(self, root: Path, name: str, topics: Sequence[str]) -> None:
        self._root, self._name, self._topics = root, name, topics
        self._numbers = itertools.count()
        self._waiting: list[Record] = []
        self._lock = threading.Lock()
        self._seen: set[str] = set()

    def send(self, record: Record) -> None:
        """Queue a record until the next flush."""
        with self._lock:
            self._waiting.append(record)

    def flush(self) -> None:
        """Write the queued records, one file per topic."""
        with self._lock:
            waiting, self._waiting = self._waiting, []
        for topic in dict.fromkeys(record.topic for record in waiting):
            name = f"{time.time_ns():020}-{self._name}-{next(self._numbers)}.json"
            folder = self._root / topic
            draft = folder / f".{name}"
            lines = [_encode_record(record) for record in waiting if record.topic == topic]
            draft.write_text("".join(lines), encoding="utf-8")
            draft.rename(folder / name)

    def poll(self, seconds: float) -> list[Record]:
        """Return the records of new files."""
        end = time.monotonic() + seconds
        while not (found := self._read_new()) and time.monotonic() < end:
            time.sleep(0.02)
        return found

    def close(self) -> None:
        """Flush."""
        self.flush()

    def _read_new(self) -> list[Record]:
        files = [path for topic in self._topics for path in (self._root / topic).glob("[0-9]*")]
        files = sorted((p for p in files if p.name not in self._seen), key=lambda p: p.name)
        found = []
        for path in files:
            self._seen.add(path.name)
            lines = path.read_text(encoding="utf-8").splitlines()
            found += [_decode_record(path.parent.name, json.loads(line)) for line in lines]
        return found


def _encode_record(record: Record) -> str:
    headers = [{"key": name, "value": value.decode("ascii")} for name, value in record.headers]
    fields = {
        "topic": record.topic,
        "key": record.key,
        "value": record.value,
        "headers": headers,
        "timestamp": dt.datetime.now(dt.UTC).isoformat(),
    }
    return json.dumps(fields) + "\n"


def _decode_record(topic: str, fields: dict[str, Any]) -> Record:
    headers = [(pair["key"], pair["value"].encode("ascii")) for pair in fields["headers"]]
    return Record(topic, fields["key"], fields["value"], headers)


class KafkaTopics:
    """Topics of a broker: all partitions from their start, without a consumer group."""

    def __init__(self, server: str, name: str, topics: Sequence[str]) -> None:
        kafka = _import_client()
        common = {"bootstrap.servers": server, "client.id": f"{name}-{os.getpid()}"}
        self._producer = kafka.Producer(
            {**common, "enable.idempotence": True, "linger.ms": 2, "acks": "all"}
        )
        self._rejected: list[str] = []
        self._consumer = None
        if topics:
            self._consumer = kafka.Consumer(
                {**common, "group.id": name, "enable.auto.commit": False}
            )
            self._consumer.assign(_list_partitions(self._consumer, topics))

    def send(self, record: Record) -> None:
        """Pass a record to the client, which sends it in the background."""
        while True:
            try:
                self._producer.produce(
                    record.topic,
                    record.value.encode(),
                    record.key.encode(),
                    headers=record.headers,
                    on_delivery=self._on_delivery,
                )
            except BufferError:
                self._producer.poll(0.1)
            else:
                self._producer.poll(0)
                return

    def flush(self) -> None:
        """Wait until the broker has acknowledged all records."""
        left = self._producer.flush(30)
        if left or self._rejected:
            raise SetupError(f"{left} records were not sent; rejected: {self._rejected[:3]}")

    def poll(self, seconds: float) -> list[Record]:
        """Return new records of the broker."""
        if self._consumer is None:
            raise InputError("this transport was opened without topics to read")
        found = []
        for message in self._consumer.consume(500, seconds):
            if message.error() is not None:
                raise SetupError(f"broker error: {message.error()}")
            found.append(
                Record(
                    message.topic(),
                    (message.key() or b"").decode(),
                    message.value().decode(),
                    [(name, bytes(value)) for name, value in message.headers() or ()],
                )
            )
        return found

    def close(self) -> None:
        """Flush and disconnect."""
        self.flush()
        if self._consumer is not None:
            self._consumer.close()

    def _on_delivery(self, error: object, message: object) -> None:
        if error is not None:
            self._rejected.append(str(error))


def _list_partitions(consumer: Any, topics: Iterable[str]) -> list[Any]:
    kafka = _import_client()
    return [
        kafka.TopicPartition(topic, number, kafka.OFFSET_BEGINNING)
        for topic in topics
        for number in consumer.list_topics(topic, 10).topics[topic].partitions
    ]


def make_topics(address: str, topics: Sequence[str], lake: Sequence[str]) -> None:
    """Create all topics; those of the lake get the append time as timestamp."""
    kind, _, where = address.partition(":")
    if kind == "files":
        for topic in (*topics, *lake):
            Path(where, topic).mkdir(parents=True)
        return
    from confluent_kafka.admin import AdminClient, NewTopic

    arrival = {"message.timestamp.type": "LogAppendTime"}
    new = [NewTopic(topic, 1, 1) for topic in topics]
    new += [NewTopic(topic, 2, 1, config=arrival) for topic in lake]
    admin = AdminClient({"bootstrap.servers": where})  # must live until all replies
    for topic, made in admin.create_topics(new, request_timeout=30).items():
        try:
            made.result(40)
        except Exception as error:  # KafkaException
            raise SetupError(f"the broker did not create topic {topic}: {error}") from error


def _import_client() -> Any:
    try:
        import confluent_kafka
    except ModuleNotFoundError as error:
        raise SetupError("no Kafka client: `make pipeline` installs confluent-kafka") from error
    return confluent_kafka
