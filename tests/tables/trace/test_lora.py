"""LoRaWAN uplinks: ids by device and counter, receipts by gateway, order of a device."""

from __future__ import annotations

import gzip
import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from antecede.tables.audit import audit
from antecede.tables.trace.arrow import Trace, read
from antecede.tables.trace.formats import lora
from antecede.tables.trace.formats.lora_spellings import SPELLINGS
from tests.tables.trace.files import list_quarantined, write_file, write_lines

MS = 10**6
MINUTE = 60_000


def uplink(
    counter: int, *gateways: Any, at: int = 0, data: str = "", **more: Any
) -> dict[str, Any]:
    heard = [{"gatewayID": g, "time": "2023-06-23T09:10:28.649Z"} for g in gateways or ("g",)]
    return {
        "devEUI": "d1",
        "deviceName": "door",
        "rxInfo": heard,
        "fCnt": counter,
        "fPort": 3,
        "data": data or str(counter),
        "_timestamp": 1_687_511_428_896 + at,
        "_topic": "application/rx",
    } | more


def write_uplinks(folder: Path, *records: Any, name: str = "up.ndjson") -> Path:
    return write_lines(folder / name, records)


def rows(trace: Trace, kind: str, *names: str) -> list[Any]:
    found = [row for row in trace.events.to_pylist() if row["kind"] == kind]
    return [tuple(row[n] for n in names) if len(names) > 1 else row[names[0]] for row in found]


def test_one_uplink_and_a_reception_for_each_gateway(tmp_path: Path) -> None:
    record = uplink(7, "g1", "g2")
    del record["rxInfo"][1]["time"]
    trace = read([write_uplinks(tmp_path, record)])
    assert trace.format == "lora"
    sent = ("d1:7", "d1", 7, 1_687_511_428_896 * MS, None, ["application/rx", "port 3"], "door")
    columns = ("id", "member", "seq", "arrival", "send_time", "topics", "text")
    assert rows(trace, "send", *columns) == [sent]
    nine = 1_687_511_428_649 * MS
    assert rows(trace, "receive", "id", "member", "seq", "arrival", "causes") == [
        ("d1:7", "g1", None, nine, []),
        ("d1:7", "g2", None, None, []),
    ]


def test_the_other_spelling(tmp_path: Path) -> None:
    record = {
        "name": "tower",
        "dev_eui": "A8",
        "app_eui": "00",
        "fcnt": 9,
        "port": 5,
        "raw_packet": "gAA",
        "_date": "2023-06-23T11:37:46.874Z",
        "hotspots": [{"id": "h", "name": "n", "reported_at": 1_687_520_266_404}],
    }
    trace = read([write_uplinks(tmp_path, record)])
    archived = 1_687_520_266_874 * MS
    assert rows(trace, "send", "id", "arrival", "topics") == [("A8:9", archived, ["00", "port 5"])]
    assert rows(trace, "receive", "member", "arrival") == [("h", 1_687_520_266_404 * MS)]


def test_the_parent_is_the_uplink_heard_before(tmp_path: Path) -> None:
    other = uplink(6, devEUI="d2")
    report = audit([write_uplinks(tmp_path, uplink(5), other, uplink(6), uplink(9))])
    trace = read([tmp_path / "up.ndjson"])
    assert rows(trace, "send", "id", "causes") == [
        ("d1:5", []),
        ("d2:6", []),
        ("d1:6", ["d1:5"]),
        ("d1:9", ["d1:6"]),
    ]
    assert report.details["uplinks_not_heard"] == 2
    assert (report.missing_causes, report.merges, report.roots) == (0, 0, 2)


def test_a_late_uplink_is_the_parent_of_one_before_it_in_the_file(tmp_path: Path) -> None:
    path = write_uplinks(tmp_path, uplink(5), uplink(7, at=1), uplink(6, at=2), uplink(8, at=3))
    trace = read([path])
    assert rows(trace, "send", "id", "causes") == [
        ("d1:5", []),
        ("d1:7", ["d1:6"]),
        ("d1:6", ["d1:5"]),
        ("d1:8", ["d1:7"]),
    ]
    assert trace.details["late_records"] == 1
    assert audit([path]).inversions == {"arrival": 1, "file_order": 1}


def test_the_same_uplink_reported_again_is_no_further_message(tmp_path: Path) -> None:
    again = uplink(5, "g2", at=20 * MINUTE, data="5")
    trace = read([write_uplinks(tmp_path, uplink(5, "g1"), uplink(6, at=15 * MINUTE), again)])
    assert rows(trace, "send", "id") == ["d1:5", "d1:6"]
    assert rows(trace, "receive", "id", "member") == [("d1:5", "g1"), ("d1:6", "g"), ("d1:5", "g2")]
    assert trace.details["repeated_records"] == 1


@pytest.mark.parametrize("change", [{"data": "else"}, {"at": 61 * MINUTE}, {"fPort": 1}])
def test_the_same_number_otherwise_tells_of_a_reset(change: dict[str, Any], tmp_path: Path) -> None:
    records = [
        uplink(0),
        uplink(1),
        uplink(0, **{"data": "0", **change}),
        uplink(1, at=99 * MINUTE),
    ]
    trace = read([write_uplinks(tmp_path, *records)])
    assert rows(trace, "send", "id", "causes") == [
        ("d1:0", []),
        ("d1:1", ["d1:0"]),
        ("d1/2:0", []),
        ("d1/2:1", ["d1/2:0"]),
    ]
    assert trace.details["counter_resets"] == 1
    summary = audit([tmp_path / "up.ndjson"]).summary()
    assert "1 time a device began to count again from a lower number" in summary


def test_a_much_lower_number_tells_of_a_reset(tmp_path: Path) -> None:
    trace = read([write_uplinks(tmp_path, uplink(4000), uplink(0), uplink(1), uplink(0, data="z"))])
    assert rows(trace, "send", "id") == ["d1:4000", "d1/2:0", "d1/2:1", "d1/3:0"]


def test_sixteen_bits_wrap(tmp_path: Path) -> None:
    records = [uplink(65_530), uplink(65_535), uplink(1), uplink(65_534), uplink(0), uplink(2)]
    trace = read([write_uplinks(tmp_path, *records)])
    assert rows(trace, "send", "seq", "causes") == [
        (65_530, []),
        (65_535, ["d1:65534"]),
        (65_537, ["d1:65536"]),
        (65_534, ["d1:65530"]),
        (65_536, ["d1:65535"]),
        (65_538, ["d1:65537"]),
    ]
    assert trace.details["counter_wraps"] == 1
    assert trace.details["late_records"] == 2
    assert trace.details["counter_resets"] == 0


def test_counters_of_32_bits_go_on(tmp_path: Path) -> None:
    trace = read(
        [write_uplinks(tmp_path, uplink(65_535), uplink(65_536), uplink(70_000), uplink(3))]
    )
    assert rows(trace, "send", "id") == ["d1:65535", "d1:65536", "d1:70000", "d1/2:3"]
    assert trace.details["counter_wraps"] == 0


def test_a_gateway_with_two_antennas(tmp_path: Path) -> None:
    record = uplink(1, "g", "g", "h")
    record["rxInfo"].append({"gatewayID": "g", "time": "2023-06-23T09:10:28.650Z"})
    trace = read([write_uplinks(tmp_path, record)])
    assert rows(trace, "receive", "member") == ["g", "h", "g"]  # the last at another time
    assert trace.details["repeated_receptions"] == 1


def test_bad_records_cost_themselves(tmp_path: Path) -> None:
    good = uplink(2, "g")
    good["rxInfo"] += [{"rssi": -3}, "nonsense", {"gatewayID": "h", "time": "soon"}]
    status = {"devEUI": "d1", "batteryLevel": 0, "_topic": "application/status"}
    trace = read(
        [
            write_uplinks(
                tmp_path,
                uplink(1),
                "{broken",
                "[]",
                uplink(-1),
                uplink(True),
                uplink(2**32),
                status,
                good,
                uplink(3, devEUI=None),
                uplink(3, rxInfo={}),
                {"hello": 1},
                "",
                uplink(3),
            )
        ]
    )
    assert rows(trace, "send", "id") == ["d1:1", "d1:2", "d1:3"]
    assert rows(trace, "receive", "member", "arrival")[2] == ("h", None)
    assert [line for line, _ in list_quarantined(trace)] == [2, 3, 4, 5, 6, 8, 8, 9, 10, 11]
    reasons = [reason.partition(":")[0] for _, reason in list_quarantined(trace)]
    assert reasons[2:5] == ["invalid frame counter"] * 3
    assert reasons[5:7] == ["rxInfo has a gateway without gatewayID"] * 2
    assert reasons[7:] == [
        "no id",
        "rxInfo is not a list",
        "no list of gateways; expected one of rxInfo, uplink_message.rx_metadata, hotspots",
    ]
    assert trace.details["other_records"] == 1
    assert trace.details["unreadable_times"] == 1


def test_a_file_that_breaks_off_gives_what_waits(tmp_path: Path) -> None:
    text = "".join(json.dumps(uplink(k, f"g{k * 7919 % 10007}")) + "\n" for k in range(3000))
    whole = gzip.compress(text.encode())
    path = write_file(tmp_path, whole[: len(whole) // 2], "up.ndjson.gz")
    trace = read([path])
    sent = rows(trace, "send", "seq")
    assert sent == list(range(len(sent)))
    assert len(sent) > lora.LOOK_AHEAD
    assert "truncated or damaged" in list_quarantined(trace)[-1][1]


def test_memory_of_a_device_is_bounded(tmp_path: Path) -> None:
    count = 3 * lora.MAX_REMEMBERED
    uplinks = lora._UplinkReader("up")
    for number in range(count):
        uplinks.add_line(json.dumps(uplink(number)), number)
        list(uplinks.take_ready(lora.LOOK_AHEAD))
    session = uplinks.sessions["d1"][None]
    assert len(session.heard) == len(session.seen) == lora.MAX_REMEMBERED
    assert len(uplinks.rows) <= 2 * lora.LOOK_AHEAD


RECORDS = [json.dumps(uplink(k, "g", "h")).encode() for k in range(12)]
LONGEST = max(map(len, RECORDS))


@given(
    st.integers(0, len(RECORDS) - 1),
    st.integers(0, LONGEST),
    st.integers(0, 40),
    st.binary(max_size=4).map(lambda raw: raw.replace(b"\n", b"")),
)
def test_damage_in_a_line_costs_that_line(which: int, at: int, gone: int, put: bytes) -> None:
    whole = list(RECORDS)
    whole[which] = whole[which][:at] + put + whole[which][at + gone :]
    assume(not whole[0].startswith(b"\x1f\x8b"))  # a compressed file, not a damaged line
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "up.ndjson"
        path.write_bytes(b"\n".join(whole))
        trace = read([path], "lora")
    found = set(
        zip(trace.events["kind"].to_pylist(), trace.events["line"].to_pylist(), strict=True)
    )
    assert {("send", k + 1) for k in range(len(whole)) if k != which} <= found
    assert {("receive", k + 1) for k in range(len(whole)) if k != which} <= found
    if whole[which] and ("send", which + 1) not in found:  # otherwise inferred from its number
        known = trace.details["repeated_records"] or trace.details["other_records"]
        assert trace.quarantine.num_rows or known


@pytest.mark.slow
def test_the_real_files(shared_data: Path) -> None:
    """Expected counts are from independent loops over the records."""
    expected = {  # uplinks, counter resets, repeated records, other records
        "d1d1e80000000032_campusiot-2": (10_102, 9, 0, 0),
        "d1d1e80000000032_campusiot": (9_417, 0, 1, 368),
        "ems-tourperret-A81758FFFE04B1C1-2": (20_109, 0, 242, 0),
    }
    for name, (uplinks, resets, again, others) in expected.items():
        path = shared_data / "lora" / f"{name}.ndjson.gz"
        report = audit([path])
        details = report.details
        assert (report.format, report.messages, details["quarantined"]) == ("lora", uplinks, 0)
        assert (details["counter_resets"], details["repeated_records"]) == (resets, again)
        assert details["other_records"] == others
        with gzip.open(path) as file:
            records = [json.loads(line) for line in file]
        key, gateway = ("hotspots", "id") if "ems" in name else ("rxInfo", "gatewayID")
        entries = [(g[gateway], k) for k, r in enumerate(records) for g in r.get(key, ())]
        assert details["receipts"] + details["repeated_receptions"] == len(entries)
        assert details["arrivals"]["receivers"] == len({name for name, _ in entries})


@pytest.mark.slow
def test_the_gateway_whose_clock_is_days_behind(shared_data: Path) -> None:
    report = audit([shared_data / "lora" / "d1d1e80000000032_campusiot-2.ndjson.gz"])
    offsets = dict(report.details["arrivals"]["offsets_ns"])
    odd = min(offsets, key=lambda name: offsets[name])
    assert offsets.pop(odd) < -228_000 * 10**9
    assert all(-300 * MS < value < 0 for value in offsets.values())
    assert f"{odd} has times 2.6 days behind" in report.summary()


# --- other servers --------------------------------------------------------------------------


def chirpstack(counter: int, *, at: int = 0, address: str = "00a1", **more: Any) -> dict[str, Any]:
    heard = [
        {"gatewayId": "g1", "gwTime": f"2024-05-01T10:{at:02}:00.5Z", "nsTime": "x", "rssi": -1},
        {"gatewayId": "g2", "time": f"2024-05-01T10:{at:02}:01Z"},
        {"gatewayId": "g3"},
    ]
    record: dict[str, Any] = {
        "deduplicationId": f"x{counter}",
        "time": f"2024-05-01T10:{at:02}:02Z",
        "deviceInfo": {"applicationName": "farm", "deviceName": "gate", "devEui": "e1"},
        "devAddr": address,
        "data": f"{counter}",
        "rxInfo": heard,
    }
    return record | ({"fCnt": counter, "fPort": 2} if counter else {}) | more


def things(counter: int, *, at: int = 0, key: str = "k1", **more: Any) -> dict[str, Any]:
    heard = [
        {"gateway_ids": {"gateway_id": "g1", "eui": "E"}, "time": f"2024-05-01T10:{at:02}:00Z"},
        {"gateway_ids": {"eui": "E2"}, "received_at": "2024-05-01T10:00:00Z"},
    ]
    message: dict[str, Any] = {"session_key_id": key, "f_port": 5, "rx_metadata": heard}
    message |= {"frm_payload": f"{counter}"} | ({"f_cnt": counter} if counter else {})
    ids = {"device_id": "gate", "application_ids": {"application_id": "farm"}, "dev_eui": "e1"}
    received = f"2024-05-01T10:{at:02}:02Z"
    return {"end_device_ids": ids, "received_at": received, "uplink_message": message, **more}


def minute(at: int, second: float) -> int:
    return 1_714_557_600 * 10**9 + at * 60 * 10**9 + int(second * 10**9)


def test_uplinks_of_chirpstack_4(tmp_path: Path) -> None:
    path = write_uplinks(tmp_path, chirpstack(0), chirpstack(2, at=2), chirpstack(1, at=1))
    trace = read([path])
    assert trace.format == "lora"
    assert rows(trace, "send", "id", "seq", "causes", "arrival", "topics", "text") == [
        ("e1:0", 0, [], minute(0, 2), ["farm"], "gate"),
        ("e1:2", 2, ["e1:1"], minute(2, 2), ["farm", "port 2"], "gate"),
        ("e1:1", 1, ["e1:0"], minute(1, 2), ["farm", "port 2"], "gate"),
    ]
    assert rows(trace, "receive", "member", "arrival")[:3] == [
        ("g1", minute(0, 0.5)),
        ("g2", minute(0, 1)),
        ("g3", None),
    ]
    assert audit([path]).inversions["arrival"] == 0


def test_uplinks_of_the_things_stack_also_in_envelopes(tmp_path: Path) -> None:
    path = write_uplinks(
        tmp_path,
        things(0),
        {"result": things(2, at=2)},
        {"name": "as.up.data.forward", "data": things(1, at=1)},
    )
    trace = read([path])
    assert trace.format == "lora"
    assert rows(trace, "send", "id", "causes", "arrival", "topics", "text") == [
        ("e1:0", [], minute(0, 2), ["farm", "port 5"], "gate"),
        ("e1:2", ["e1:1"], minute(2, 2), ["farm", "port 5"], "gate"),
        ("e1:1", ["e1:0"], minute(1, 2), ["farm", "port 5"], "gate"),
    ]
    assert rows(trace, "receive", "member", "arrival")[:2] == [("g1", minute(0, 0)), ("E2", None)]


def test_joins_and_states_of_other_servers_are_no_uplinks(tmp_path: Path) -> None:
    joined = {key: value for key, value in chirpstack(0).items() if key not in ("rxInfo", "data")}
    accepted = things(0)
    accepted["join_accept"] = accepted.pop("uplink_message")
    lost = {key: value for key, value in chirpstack(3).items() if key != "rxInfo"}
    trace = read([write_uplinks(tmp_path, chirpstack(1), joined, things(1), accepted, lost)])
    assert trace.details["other_records"] == 2
    assert [line for line, _ in list_quarantined(trace)] == [5]


@pytest.mark.parametrize("server", ["address", "key"])
def test_a_session_that_the_server_names_begins_anew(server: str, tmp_path: Path) -> None:
    def record(counter: int, session: str, at: int) -> dict[str, Any]:
        if server == "address":
            return chirpstack(counter, at=at, address=session)
        return things(counter, at=at, key=session)

    sent = [(4, "s1"), (5, "s1"), (0, "s2"), (6, "s1"), (1, "s2"), (5, "s3")]
    trace = read(
        [write_uplinks(tmp_path, *(record(n, key, at) for at, (n, key) in enumerate(sent)))]
    )
    assert dict(rows(trace, "send", "id", "causes")) == {
        "e1:4": [],
        "e1:5": ["e1:4"],
        "e1/2:0": [],
        "e1:6": ["e1:5"],
        "e1/2:1": ["e1/2:0"],
        "e1/3:5": [],
    }
    assert trace.details["counter_resets"] == 2


def test_each_server_is_named_in_the_docs() -> None:
    page = (Path(__file__).parents[3] / "docs/design/traces.md").read_text()
    assert all(one.specification in page for one in SPELLINGS)
