"""Why a handshake failed, in words."""

from __future__ import annotations

import ssl

import pytest

from antecede.live.drivers.handshakes import is_for_good, why_no_handshake


def error(reason: str) -> ssl.SSLError:
    found = ssl.SSLError(1, f"[SSL: {reason}] in OpenSSL's words")
    found.reason = reason
    return found


@pytest.mark.parametrize(
    ("one", "words"),
    [
        (error("WRONG_VERSION_NUMBER"), "does not use TLS"),
        (error("TLSV1_ALERT_UNKNOWN_CA"), "rejects our certificate (unknown ca)"),
        (error("PEER_DID_NOT_RETURN_A_CERTIFICATE"), "it presented no certificate"),
        (error("SOMETHING_ELSE"), "in OpenSSL's words"),
        (TimeoutError(), "in time"),
        (ConnectionResetError(), "before it presented a certificate"),
        (OSError("no room"), "no room"),
        (OSError(), "OSError"),
    ],
)
def test_every_failure_has_a_reason(one: Exception, words: str) -> None:
    assert words in why_no_handshake(one)


def test_what_may_pass_is_tried_again() -> None:
    assert is_for_good(error("WRONG_VERSION_NUMBER"))
    assert not is_for_good(error("UNEXPECTED_EOF_WHILE_READING"))
    assert not is_for_good(ConnectionResetError())
    assert not is_for_good(None)
