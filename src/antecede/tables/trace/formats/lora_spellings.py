"""JMESPath expressions for LoRaWAN uplinks, by network server."""

from __future__ import annotations

from typing import Any, NamedTuple

from antecede.tables.trace.expressions import compile_expression


class Spelling(NamedTuple):
    """JMESPath expressions for the records of one network server."""

    specification: str
    gateways: str
    gateway: str
    """Expression within a gateway, like `time`."""
    time: str
    device: str
    counter: str
    port: str
    application: str
    name: str
    arrival: str = "_timestamp || _date"
    payload: str = "[data, payload, raw_packet, devaddr, devAddr, fPort, port]"
    """Values that differ between two uplinks of one number."""
    session: str = "`null`"
    """Value that changes when the device joins again."""
    is_zero_omitted: bool = False
    """True if an absent counter is 0: JSON of protocol buffers omits zeros."""


SPELLINGS = (
    Spelling(
        "ChirpStack 4 (integration events, API 4.0 to 4.18)",
        gateways="rxInfo",
        gateway="gatewayId",
        time="gwTime || time",
        device="deviceInfo.devEui",
        counter="fCnt",
        port="fPort",
        application="deviceInfo.applicationName || deviceInfo.applicationId",
        name="deviceInfo.deviceName",
        arrival="_timestamp || _date || time",
        payload="[data, devAddr, fPort]",
        session="devAddr",
        is_zero_omitted=True,
    ),
    Spelling(
        "The Things Stack 3 (uplink messages of the application server)",
        gateways="uplink_message.rx_metadata",
        gateway="gateway_ids.gateway_id || gateway_ids.eui",
        time="time",
        device="end_device_ids.dev_eui || end_device_ids.device_id",
        counter="uplink_message.f_cnt",
        port="uplink_message.f_port",
        application="end_device_ids.application_ids.application_id",
        name="end_device_ids.device_id",
        arrival="_timestamp || _date || received_at || uplink_message.received_at",
        payload="[uplink_message.frm_payload, uplink_message.f_port, end_device_ids.dev_addr]",
        session="uplink_message.session_key_id || end_device_ids.dev_addr",
        is_zero_omitted=True,
    ),
    Spelling(
        "ChirpStack 3",
        gateways="rxInfo",
        gateway="gatewayID",
        time="time",
        device="devEUI",
        counter="fCnt",
        port="fPort",
        application="applicationName || _topic",
        name="deviceName",
    ),
    Spelling(
        "Helium",
        gateways="hotspots",
        gateway="id",
        time="reported_at",
        device="dev_eui",
        counter="fcnt",
        port="port",
        application="app_eui",
        name="name",
    ),
)


class Fields:
    """Compiled expressions of a `Spelling`."""

    def __init__(self, spelling: Spelling) -> None:
        self.spelling = spelling
        self._compiled = {
            name: compile_expression(expression, f"lora: {name}")
            for name, expression in spelling._asdict().items()
            if isinstance(expression, str) and name != "specification"
        }

    def select(self, name: str, record: Any) -> Any:
        """Return the selected value, if any."""
        return self._compiled[name].parsed.search(record)

    def fits(self, record: Any) -> bool:
        """Return whether a record has a device and gateways in this spelling."""
        found = (self.select(name, record) for name in ("device", "gateways"))
        return all(one is not None for one in found)

    def is_uplink(self, record: Any) -> bool:
        """Return whether a fitting record has a counter, or may omit it."""
        return self.spelling.is_zero_omitted or self.select("counter", record) is not None


FIELDS = tuple(map(Fields, SPELLINGS))


def unwrap(record: dict[str, Any]) -> dict[str, Any]:
    """Return the message in `result` (storage) or `data` (events) of The Things Stack."""
    for name in ("result", "data"):
        inner = record.get(name)
        if isinstance(inner, dict) and "end_device_ids" in inner:
            return inner
    return record


def is_other_record(record: dict[str, Any]) -> bool:
    """Return whether a record without gateways is a status, a join or a downlink."""
    return any(
        fields.select("device", record) is not None
        and fields.select("counter", record) is None
        and not any(map(bool, fields.select("payload", record)[:1]))
        for fields in FIELDS
    )
