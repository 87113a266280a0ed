"""Reasons of failed TLS handshakes, as text for users."""

from __future__ import annotations

import ssl
from typing import Final

NO_GREETING: Final = (
    "it closed the connection without HELLO; if its group uses certificates, give tls= (antecede "
    "chat: --certs) instead of insecure"
)
NO_TLS: Final = (
    "it does not use TLS, but this member has certificates; give all members of the group "
    "certificates, or none (insecure)"
)
_WORDS: Final = {
    "PEER_DID_NOT_RETURN_A_CERTIFICATE": "it presented no certificate",
    "NO_SHARED_CIPHER": "it has no cipher in common with this member",
    "UNSUPPORTED_PROTOCOL": "its TLS is older than 1.3",
}
_NOT_TLS: Final = {
    *("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "RECORD_LAYER_FAILURE", "BAD_RECORD_TYPE"),
    *("PACKET_LENGTH_TOO_LONG", "INVALID_MESSAGE", "HTTPS_PROXY_REQUEST"),
}


def why_no_handshake(error: Exception) -> str:
    """Return why a handshake failed."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is of another authority ({error.verify_message})"
    if isinstance(error, ssl.SSLError) and error.reason:
        if error.reason in _NOT_TLS:
            return NO_TLS
        alert = error.reason.partition("_ALERT_")[2]
        if alert:
            return f"it rejects our certificate ({alert.replace('_', ' ').lower()})"
        return _WORDS.get(error.reason, str(error))
    if isinstance(error, TimeoutError):
        return "it presented no certificate in time"
    if isinstance(error, ConnectionError) and not str(error):
        return "it closed the connection before it presented a certificate"
    return str(error) or type(error).__name__


def is_alert(error: Exception | None) -> bool:
    """Return whether the other end rejected the handshake, as for a foreign certificate."""
    return isinstance(error, ssl.SSLError) and "_ALERT_" in (error.reason or "")


def is_for_good(error: Exception | None) -> bool:
    """Return whether another dial is useless: a foreign certificate, or no TLS at the other end."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return True
    return isinstance(error, ssl.SSLError) and error.reason in _NOT_TLS
