"""Certificates: who is let in, and what is said to who is not."""

from __future__ import annotations

import asyncio
import dataclasses
import datetime
import os
import re
import stat
from pathlib import Path
from typing import Any

import pytest

from antecede.cli import main
from antecede.errors import DecodeError, InputError, LocalError, PeerError
from antecede.live import keys
from antecede.live.metrics import exposition
from antecede.live.peer import Peer
from antecede.live.status import format_status
from antecede.live.tls import Tls
from tests.live import peer_control
from tests.live.certificates import set_validity
from tests.live.loops import take, until
from tests.live.observation import observe

DAY = datetime.timedelta(days=1)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    keys.make_authority(tmp_path)
    for name in ("alice", "bob"):
        keys.make_member(tmp_path, name)
    return tmp_path


def tls(folder: Path, name: str, authority: Path | None = None) -> Tls:
    return Tls(keys.member_path(folder, name), (authority or folder) / keys.AUTHORITY)


def peer(name: str, secure: Tls, **more: Any) -> Peer:
    return Peer(name, listen="127.0.0.1:0", tls=secure, **more)


def test_the_command_makes_what_a_peer_needs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "keys"
    assert main(["certs", str(folder), "alice", "bob", "--hosts", "localhost,127.0.0.1"]) == 0
    out = capsys.readouterr().out
    files = sorted(path.name for path in folder.iterdir())
    assert files == ["alice.pem", "bob.pem", "ca.key", "ca.pem"]
    assert all(text in out for text in (*files, "2 members for 365 days"))
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()}
    assert modes == {"alice.pem": 0o600, "bob.pem": 0o600, "ca.key": 0o600, "ca.pem": 0o644}
    assert tls(folder, "alice").name == "alice"


def test_the_command_adds_members_and_replaces_none_by_itself(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert main(["certs", str(folder), "carol", "bob"]) == 2
    error = capsys.readouterr().err
    assert all(text in error for text in ("bob.pem", "--force"))
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    assert main(["certs", str(folder), "carol"]) == 0
    assert (folder / "carol.pem").exists()
    assert main(["certs", str(folder), "bob", "--force"]) == 0
    after = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert after["bob.pem"] != before["bob.pem"]
    assert {name: after[name] for name in ("alice.pem", "ca.pem", "ca.key")} == {
        name: before[name] for name in ("alice.pem", "ca.pem", "ca.key")
    }


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["a", "a"], "two members"),
        (["a~b"], "member name"),
        (["a", "--days", "0"], "days"),
        (["a", "--hosts", "x" * 300], "host"),
    ],
)
def test_what_cannot_be_makes_nothing(
    tmp_path: Path, arguments: list[str], why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["certs", str(tmp_path / "keys"), *arguments]) == 2
    assert why in capsys.readouterr().err
    left = {path.name for path in tmp_path.rglob("*")}
    assert not any(name.endswith(".pem") and name != keys.AUTHORITY for name in left)


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("Zoë", "Zoë.pem"),
        ("名前", "名前.pem"),
        ("x y", "x y.pem"),
        ("a/b", "a%2Fb.pem"),
        ("a%2Fb", "a%252Fb.pem"),
        ("Zoe\u0308", "Zoe%CC%88.pem"),  # a file system may take it for the first one's
    ],
)
def test_a_members_file_has_its_name_where_that_can_be(name: str, file: str) -> None:
    assert keys.member_path(Path("keys"), name) == Path("keys") / file


def test_where_files_have_no_such_letters_they_are_encoded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsencode", lambda name: name.encode("ascii"))
    assert keys.member_path(Path("keys"), "Zoë") == Path("keys/Zo%C3%AB.pem")


def test_names_of_any_script_and_sign_come_back(tmp_path: Path) -> None:
    keys.make_authority(tmp_path)
    for name in ("Zoë", "a/b", "..", "x y", "名前", "a%2Fb", "n" * 180):
        keys.make_member(tmp_path, name)
        assert tls(tmp_path, name).name == name
    assert {path.parent for path in tmp_path.rglob("*")} == {tmp_path}, "no file anywhere else"


def test_an_authority_is_not_replaced(folder: Path) -> None:
    with pytest.raises(InputError, match=r"ca\.pem"):
        keys.make_authority(folder)


def test_a_missing_authority_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"ca\.pem"):
        keys.make_member(tmp_path, "alice")


def test_files_that_are_no_certificates_are_named(folder: Path, tmp_path: Path) -> None:
    (folder / "no.pem").write_text("nothing")
    for certificate, authority, named in (
        ("no.pem", "ca.pem", "no.pem"),
        ("alice.pem", "no.pem", "no.pem"),
        ("missing.pem", "ca.pem", "missing.pem"),
    ):
        with pytest.raises(InputError, match=named):
            Tls(folder / certificate, folder / authority)


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"certificate": None}, "certificate=None is invalid"),
        ({"authority": None}, "authority=None is invalid"),
        ({"authority": ""}, "authority='' is invalid"),
        ({"certificate": 3}, "certificate=3 is invalid"),
        ({"key": b"-----BEGIN"}, "key=b'-----BEGIN' is invalid"),
        ({"password": b"x"}, "password= is a bytes; expected a text"),
    ],
)
def test_what_is_no_path_is_said(given: dict[str, Any], why: str, folder: Path) -> None:
    paths = {"certificate": folder / "alice.pem", "authority": folder / "ca.pem"}
    with pytest.raises(LocalError, match=re.escape(why)):
        Tls(**{**paths, **given})


def test_key_and_certificate_belong_together(folder: Path) -> None:
    with pytest.raises(InputError, match="does not match the certificate"):
        Tls(folder / "alice.pem", folder / "ca.pem", key=folder / "bob.pem")


def test_an_expired_certificate_is_refused_at_once(folder: Path) -> None:
    _make_in_the_past(folder, "old")
    with pytest.raises(InputError, match="is valid from"):
        tls(folder, "old")


def test_a_certificate_of_another_authority_is_refused_at_once(
    folder: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    keys.make_authority(other)
    keys.make_member(other, "alice")
    with pytest.raises(InputError, match="another authority"):
        tls(other, "alice", folder)


def test_a_certificate_that_soon_expires_is_a_warning(folder: Path) -> None:
    keys.make_member(folder, "short", days=3)
    now = datetime.datetime.now(datetime.UTC).timestamp()
    assert "short.pem expires on" in tls(folder, "short").warnings(now)[0]
    assert tls(folder, "alice").warnings(now) == []


def test_a_peer_goes_by_the_name_in_its_certificate(folder: Path) -> None:
    with pytest.raises(LocalError, match="names 'alice', not 'mallory'"):
        Peer("mallory", tls=tls(folder, "alice"))


@pytest.mark.few(1)
@pytest.mark.parametrize("how", ["other authority", "expired", "no tls"])
async def test_who_has_no_sound_certificate_is_not_let_in(
    folder: Path, tmp_path: Path, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    alice = peer("alice", tls(folder, "alice"))
    async with asyncio.timeout(30), alice, peer("bob", tls(folder, "bob")) as bob:
        await alice.bootstrap()
        with pytest.raises(PeerError):
            async with _stranger(folder, tmp_path / "other", how, monkeypatch) as stranger:
                await stranger.join(alice.address, timeout_s=1.5)
        assert alice.members == ("alice",)
        await until(lambda: observe(alice).rejected)  # the caller is counted
        await bob.join(alice.address)
        await bob.send(b"hello")
        async for message in alice:
            assert message.payload == b"hello"
            break


def _stranger(folder: Path, other: Path, how: str, monkeypatch: pytest.MonkeyPatch) -> Peer:
    if how == "no tls":
        return Peer("eve", listen="127.0.0.1:0", insecure=True)
    if how == "other authority":
        keys.make_authority(other)
        keys.make_member(other, "eve")
        # she trusts the group's authority, so it is the members who refuse
        (other / "ca.pem").write_bytes(
            (other / "ca.pem").read_bytes() + (folder / "ca.pem").read_bytes()
        )
        return peer("eve", tls(other, "eve"))
    _make_in_the_past(folder, "eve")
    with monkeypatch.context() as patch:
        patch.setattr("antecede.live.tls.check_issued", lambda *_: None)
        return peer("eve", tls(folder, "eve"))


def _make_in_the_past(folder: Path, name: str) -> None:
    keys.make_member(folder, name)
    now = datetime.datetime.now(datetime.UTC)
    set_validity(folder, name, now - DAY, now - 30 * DAY)


def test_a_name_that_is_none_is_not_believed() -> None:
    with pytest.raises(DecodeError, match="invalid certificate"):
        keys.member_name(b"nothing")


async def test_how_long_a_certificate_holds_is_seen(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    keys.make_member(folder, "bob", days=3, force=True)
    async with peer("alice", tls(folder, "alice")) as alice, peer("bob", tls(folder, "bob")) as bob:
        left = alice.status().certificate_expires_in_s, bob.status().certificate_expires_in_s
        assert left[0] is not None
        assert left[1] is not None
        assert 364 < left[0] / DAY.total_seconds() < 365.1
        assert 2 < left[1] / DAY.total_seconds() < 3.1
        assert "certificate" not in format_status(alice.status())
        assert "certificate expires in 3.0 days" in format_status(bob.status())
        late = dataclasses.replace(bob.status(), certificate_expires_in_s=-5.0)
        assert "certificate HAS EXPIRED: renew it" in format_status(late)
        name = 'antecede_live_certificate_expires_in_seconds{group_name="",member="bob"} '
        [line] = [x for x in exposition(bob.status()).decode().splitlines() if name in x]
        assert float(line.split()[-1]) == pytest.approx(left[1], abs=60)
    async with Peer("carol", insecure=True) as carol:
        assert carol.status().certificate_expires_in_s is None
        assert b"certificate" not in exposition(carol.status())
    [said] = [one for one in caplog.records if getattr(one, "antecede_event", "") == "certificate"]
    assert "bob: bob.pem expires on" in said.getMessage()


@pytest.mark.slow
async def test_what_is_left_for_a_link_that_ends_is_not_written(folder: Path) -> None:
    async with peer("alice", tls(folder, "alice")) as alice, peer("bob", tls(folder, "bob")) as bob:
        await bob.bootstrap()
        await alice.join(bob.address)
        number = peer_control.disconnect(alice, bob.status().sender_id)
        for _ in range(3):  # turns until the other end has closed, too
            peer_control.run_step(alice)
            peer_control.queue_frame(alice, number, b"an acknowledgement")
        assert alice.status().is_healthy
        await until(
            lambda: observe(alice).connected and number not in observe(alice).connections, 30
        )
        await bob.send(b"connected again")
        [message] = await take(alice, 1)
        assert message.payload == b"connected again"


def test_folders_may_be_text(tmp_path: Path) -> None:
    folder = str(tmp_path / "keys")
    certificate, _ = keys.make_authority(folder)
    member = keys.make_member(folder, "alice")
    assert member == keys.member_path(folder, "alice") == keys.member_path(Path(folder), "alice")
    assert Tls(str(member), str(certificate)).name == "alice"
