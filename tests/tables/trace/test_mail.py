"""Mail: ids in all notations, times with zones, counts."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import pytest

from antecede.tables.audit import audit
from antecede.tables.trace.arrow import read
from antecede.tables.trace.causes import BLANK, UNREAD_REPLIES
from antecede.tables.trace.formats.mail import NEAREST_ANCESTORS
from antecede.tables.trace.formats.mail_headers import parse_mail_date, strip_comments
from antecede.tables.trace.time_text import UNKNOWN_ZONE, UNREADABLE_TIMES
from tests.tables.trace.files import get_causes, join_lines, run_command

FROM_LINE = "From x Fri Mar  6 12:00:00 2015\n"
PARENT = "seed.7@mill.example"


def mail(identity: str, *headers: str) -> str:
    lines = [f"Message-ID: {identity}", "From: Eva <eva@mill.example>", *headers]
    return FROM_LINE + "\n".join(lines) + "\n\nbody\n\n"


def mailbox(folder: Path, *mails: str, name: str = "box.mbox") -> Path:
    path = folder / name
    path.write_text("".join(mails), encoding="utf-8")
    return path


# --- ids ------------------------------------------------------------------------------------

SPELLINGS = (
    f"In-Reply-To: <{PARENT}>",
    f"In-Reply-To: {PARENT}",
    f"References: {PARENT}",
    f"In-Reply-To: < {PARENT} >",
    f"In-Reply-To: <{PARENT}",
    f"In-Reply-To: {PARENT}>",
    f"In-Reply-To: <<{PARENT}>>",
    f"In-Reply-To: <\n <{PARENT}>",
    f"In-Reply-To:\n\t<{PARENT}>",
    "In-Reply-To: <seed.7\n @mill.example>",
    "References: <older@mill.example> <seed.7@mill\n .example>",
    f'In-Reply-To: "<{PARENT}>"',
    f"In-Reply-To: '<{PARENT}>'",
    'In-Reply-To: <"seed.7"@mill.example>',
    f"In-Reply-To: &lt;{PARENT}&gt;",
    "In-Reply-To: =?utf-8?q?=3Cseed=2E7=40mill=2Eexample=3E?=",
    "In-Reply-To: =?US-ASCII?B?PHNlZWQuN0BtaWxsLmV4YW1wbGU+?=",
    "References: =?utf-8?q?=3Cseed=2E7?=\n =?utf-8?q?=40mill=2Eexample=3E?=",
    "In-Reply-To: <=?utf-8?q?seed=2E7?=@mill.example>",
    f"In-Reply-To: <{PARENT}> (Eva's message of <6.March@calendar>)",
    f'In-Reply-To: Eva\'s message of "Fri <6@calendar>" <{PARENT}>',
    f'In-Reply-To: Message from Eva <eva@mill.example> of "Fri, 06 Mar 2015." <{PARENT}>',
    f"To: Ole <ole@x.example>\nIn-Reply-To: Ole <ole@x.example>: <{PARENT}>",
    f"In-Reply-To: (<{PARENT}>)",
    f"In-Reply-To: <{PARENT}> (unclosed",
    f"In-Reply-To: :( <{PARENT}>",
    f"in-reply-to : <{PARENT}>",
    f"In-Reply-To: Your note of Friday\nReferences: <{PARENT}>",
    f"In-Reply-To:\nReferences: <{PARENT}>",
    f"References: <older@mill.example>,<{PARENT}>",
    f"In-Reply-To: [{PARENT}]",
    f"In-Reply-To: ({PARENT})",
    f"In-Reply-To: mid:{PARENT}",
    f"In-Reply-To: \\<{PARENT}\\>",
    f'In-Reply-To: "{PARENT}"',
)


@pytest.mark.parametrize("header", SPELLINGS)
def test_a_reply_names_its_mail_in_any_spelling(header: str, tmp_path: Path) -> None:
    path = mailbox(tmp_path, mail("<answer@b>", header), mail(f"<{PARENT}>"))
    found = get_causes(read([path]))
    assert found["answer@b"][-1] == PARENT
    assert set(found["answer@b"]) <= {PARENT, "older@mill.example"}


@pytest.mark.parametrize(
    "written",
    [
        *("< one@b >", "<one\n @b>", "one@b", "one@b (added by relay@c)"),
        *("<one@b> (added by <relay@c>)", '<"one"@b>', "=?utf-8?q?=3Cone=40b=3E?=", '"<one@b>"'),
    ],
)
def test_a_mail_has_one_id_in_any_spelling(written: str, tmp_path: Path) -> None:
    path = mailbox(tmp_path, mail("<two@b>", "In-Reply-To: <one@b>"), mail(written))
    assert get_causes(read([path])) == {"two@b": ["one@b"], "one@b": []}


def test_each_id_of_in_reply_to_is_a_cause(tmp_path: Path) -> None:
    path = mailbox(
        tmp_path,
        mail("<a@b>"),
        mail("<b@b>"),
        mail("<c@b>", "In-Reply-To: <a@b> <b@b> <a@b>"),
        mail("<d@b>", "In-Reply-To: <a@b>", "In-Reply-To: <b@b>"),
    )
    found = get_causes(read([path]))
    assert found["c@b"] == found["d@b"] == ["a@b", "b@b"]


def test_bare_ids_count_where_the_archive_has_them(tmp_path: Path) -> None:
    with_bare = (
        mail("1.first@b"),
        mail("2.next@b", "In-Reply-To: 1.first@b"),
        mail("3.gap@b", "In-Reply-To: 0.gone@b"),
        mail("4.last@b", "References: <2.next@b> 3.gap@b"),
        mail("5.phrase@b", "In-Reply-To: Eva at the mill, eva@mill.example, on Friday"),
    )
    trace = read([mailbox(tmp_path, *with_bare)])
    assert get_causes(trace) == {
        "1.first@b": [],
        "2.next@b": ["1.first@b"],
        "3.gap@b": ["0.gone@b"],
        "4.last@b": ["3.gap@b"],
        "5.phrase@b": [],
    }
    assert trace.details == {UNREAD_REPLIES: 1}


def test_a_gap_is_bridged_to_the_nearest_known_ancestor(tmp_path: Path) -> None:
    path = mailbox(
        tmp_path,
        mail("<leaf@b>", "In-Reply-To: <gone@b>", "References: <root@b> <twig@b> <gone@b>"),
        mail("<leaf2@b>", "References: <root@b> <gone@b>"),
        mail("<leaf3@b>", "In-Reply-To: <gone@b>", "References: <leaf3@b> <lost@b>"),
        mail("<twig@b>", "In-Reply-To: <root@b>"),
        mail("<root@b>"),
    )
    trace = read([path])
    found = get_causes(trace)
    assert found["leaf@b"] == ["gone@b", "twig@b"]
    assert found["leaf2@b"] == ["gone@b", "root@b"]
    assert found["leaf3@b"] == ["gone@b"]
    assert trace.details == {NEAREST_ANCESTORS: 2}
    report = audit([path])
    assert report.missing_causes == 3
    assert report.inversions["file_order"] == 3


def test_files_given_together_are_one_archive(tmp_path: Path) -> None:
    march = mailbox(tmp_path, mail("<root@b>"), mail("mid@b"), name="a.mbox")
    april = mailbox(
        tmp_path,
        mail("<leaf@b>", "In-Reply-To: <gone@b>", "References: <root@b> <gone@b>"),
        mail("<late@b>", "In-Reply-To: mid@b"),
        name="b.mbox",
    )
    found = get_causes(read([march, april]))
    assert found["leaf@b"] == ["gone@b", "root@b"]
    assert found["late@b"] == ["mid@b"]
    assert get_causes(read([april])) == {"leaf@b": ["gone@b"], "late@b": []}


def test_reply_headers_without_an_id_are_counted(tmp_path: Path) -> None:
    path = mailbox(
        tmp_path,
        mail("<a@b>"),
        mail("<b@b>", "In-Reply-To: Your note of Friday"),
        mail("<c@b>", "In-Reply-To: Eva <eva@mill.example>"),
        mail("<d@b>", "References: < see below >"),
        mail("<e@b>", "In-Reply-To: <>", "References:"),
    )
    trace = read([path])
    assert all(not parents for parents in get_causes(trace).values())
    assert trace.details == {UNREAD_REPLIES: 3, BLANK: 2}


@pytest.mark.parametrize(
    ("header", "plain"),
    [
        ("a (b) c", "a   c"),
        ("a (b (c) d) e", "a   e"),
        ("<a(b)c> (d)", "<a(b)c>  "),
        ("a (b", "a (b"),
        ("a ) b", "a ) b"),
        ("(a) (b) c", "     c"),
        ("((a) b", "(  b"),
        ('"(a)" (b)', '"(a)"  '),
        ("(a \\) b) c", "  c"),
    ],
)
def test_comments(header: str, plain: str) -> None:
    assert strip_comments(header).split() == plain.split()


# --- times ----------------------------------------------------------------------------------


def at(text: str) -> int:
    return int(datetime.datetime.fromisoformat(text).timestamp()) * 10**9


@pytest.mark.parametrize(
    ("written", "utc"),
    [
        ("Fri, 06 Mar 2015 09:30:00 +0530", "2015-03-06T04:00:00+00:00"),
        ("Fri, 06 Mar 2015 09:30:00 +05:30", "2015-03-06T04:00:00+00:00"),
        ("Fri, 06 Mar 2015 09:30:00 -08", "2015-03-06T17:30:00+00:00"),
        ("6 Mar 15 09:30 PST", "2015-03-06T17:30:00+00:00"),
        ("Fri, 06 Mar 2015 09:30:00 +0100 CET", "2015-03-06T08:30:00+00:00"),
        ("Fri, 06 Mar 2015 09:30:00 +0100 (MEZ)", "2015-03-06T08:30:00+00:00"),
        ("Fri, 06 Mar 2015 09:30:00 -0000", "2015-03-06T09:30:00+00:00"),
        ("Fri, 06 Mar 2015 09:30:00 Z", "2015-03-06T09:30:00+00:00"),
        ("Fri, 06 Mar 2015 09:30:60 UT", "2015-03-06T09:31:00+00:00"),
        ("Fri, 06 Mar 2015 09.30.00 GMT", "2015-03-06T09:30:00+00:00"),
        ("Fri, 06 Mar 2015 09:30:00EDT", "2015-03-06T13:30:00+00:00"),
        ("Fri, 06 Mar 2015 09:30:00 EST -0500", "2015-03-06T14:30:00+00:00"),
        ("Fri Mar  6 09:30:00 PST 2015", "2015-03-06T17:30:00+00:00"),
        ("Fri Mar  6 09:30:00 2015 +0100", "2015-03-06T08:30:00+00:00"),
        ("Fri, Mar 6 2015 09:30:00 -0700", "2015-03-06T16:30:00+00:00"),
        ("Mon, 06 Mar 100 09:30:00 +0000", "2000-03-06T09:30:00+00:00"),
        ("2015-03-06T09:30:00+01:00", "2015-03-06T08:30:00+00:00"),
    ],
)
def test_times_of_mail(written: str, utc: str) -> None:
    assert parse_mail_date(written) == (at(utc), "", True)


def test_fractions_of_a_second_stay() -> None:
    assert parse_mail_date("Fri, 06 Mar 2015 09:30:00.25 UTC").ns == (
        at("2015-03-06T09:30:00+00:00") + 25 * 10**7
    )


@pytest.mark.parametrize(
    "zone",
    [
        *("JST", "CET", "CEST", "BST", "IST", "MEZ", "MESZ", "KST", "A", "EST5EDT", "PM +0100"),
        *("GMT+0200", "GMT +0200", "UTC+2", "+2", "+200", "0200", "+2500", "+0100 +0200"),
        *("EST -0800", "W. Europe Standard Time", "Europe/Berlin", "GMT-05:00"),
    ],
)
def test_a_time_in_an_unknown_zone_is_no_time(zone: str) -> None:
    assert parse_mail_date(f"Fri, 06 Mar 2015 09:30:00 {zone}") == (None, zone, True)
    if zone != "0200":  # a year at this position
        assert parse_mail_date(f"Fri Mar  6 09:30:00 {zone} 2015") == (None, zone, True)


@pytest.mark.parametrize(
    "written",
    [
        *(
            *("yesterday", "Fri, 06 Mar 2015", "fre, 6 mars 2015 09:30:00 +0100"),
            "6/3/2015 9:30 +0100",
        ),
        *("Fri, 31 Feb 2015 09:30:00 +0100", "Fri, 06 Mar 2015 25:61:00 +0000", "09:30"),
        *("Fr, 6 Mai 2015 09:30:00 JST", "Fri, 06 Mar 99999 09:30:00 +0000"),
        "Fri, 06 Mar " + "9" * 5000 + " 09:30:00 +0000",
    ],
)
def test_an_unreadable_time_is_none(written: str) -> None:
    date = parse_mail_date(written)
    assert (date.ns, date.zone) == (None, "")


def make_dated_mail(identity: str, date: str, *more: str) -> str:
    return mail(f"<{identity}@b>", f"Date: {date}", *more)


def test_times_without_a_known_zone_are_counted_said_and_not_compared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = mailbox(
        tmp_path,
        make_dated_mail("a", "Fri, 06 Mar 2015 18:00:00 JST"),
        make_dated_mail("b", "Fri, 06 Mar 2015 10:00:00 +0000", "In-Reply-To: <a@b>"),
        make_dated_mail("c", "Fri, 06 Mar 2015 09:00:00 CET", "In-Reply-To: <b@b>"),
        make_dated_mail("d", "Fri, 06 Mar 2015 08:00:00 JST", "In-Reply-To: <c@b>"),
        make_dated_mail("e", "Fri Mar  6 07:00:00 2015", "In-Reply-To: <d@b>"),
        make_dated_mail("f", "tomorrow", "In-Reply-To: <e@b>"),
        make_dated_mail("g", "=?utf-8?q?Fri=2C_06_Mar_2015_11=3A00=3A00_+0000?="),
        make_dated_mail("h", ""),
    )
    trace = read([path])
    times = trace.events["send_time"].to_pylist()
    hour = 3600 * 10**9
    ten = at("2015-03-06T10:00:00+00:00")
    assert times == [None, ten, None, None, None, None, ten + hour, None]
    counts = {UNKNOWN_ZONE + zone: n for zone, n in (("JST", 2), ("CET", 1), ("none given", 1))}
    assert trace.details == {UNREADABLE_TIMES: 1, **counts}
    assert not audit([path]).inversions.get("send_time")
    zones = "4 times in unknown zones: JST (2), CET (1), none given (1)"
    for command in (
        ["audit", str(path)],
        ["order", str(path), "-o", str(tmp_path / "o.jsonl")],
        ["false-causality", str(path)],
        ["convert", str(path), "--to", "jsonl", "-o", str(tmp_path / "c.jsonl")],
    ):
        said = join_lines(run_command(capsys, *command))
        assert zones in said, command
        assert "1 time not readable" in said, command


def test_arrival_is_by_received_else_by_the_from_line(tmp_path: Path) -> None:
    def arrival(from_line: str, *headers: str) -> tuple[Any, dict[str, Any]]:
        lines = ["Message-ID: <a@b>", *headers]
        path = mailbox(tmp_path, f"{from_line}\n" + "\n".join(lines) + "\n\nbody\n")
        trace = read([path])
        return trace.events["arrival"][0].as_py(), trace.details

    noon = at("2015-03-06T12:00:00+00:00")
    plain = "From x Fri Mar  6 12:00:00 2015"
    assert arrival(plain) == (noon, {})
    assert arrival(f"{plain} +0100") == (noon - 3600 * 10**9, {})
    assert arrival("From x Fri Mar  6 12:00:00 EST 2015") == (noon + 5 * 3600 * 10**9, {})
    assert arrival(f"{plain} remote from y") == (noon, {})
    assert arrival("From x Fri Mar  6 12:00:00 JST 2015") == (None, {UNKNOWN_ZONE + "JST": 1})
    relay = "Received: from a by b; Fri, 6 Mar 2015 13:00:01"
    assert arrival(plain, f"{relay} +0100 (CET)") == (noon + 10**9, {})
    assert arrival(plain, f"{relay} CET") == (noon, {UNKNOWN_ZONE + "CET": 1})
    assert arrival(plain, "Received: from a by b; once") == (noon, {UNREADABLE_TIMES: 1})


def test_unknown_zones_are_named_up_to_a_limit(tmp_path: Path) -> None:
    mails = [make_dated_mail(str(k), f"Fri, 06 Mar 2015 10:00:00 X{k}Y") for k in range(50)]
    details = read([mailbox(tmp_path, *mails)]).details
    assert len(details) == 21
    assert details[UNKNOWN_ZONE + "others"] == 30
