"""Why a handshake failed, in words for people: those of OpenSSL say what it was doing."""

from __future__ import annotations

import ssl
from typing import Final

NO_GREETING: Final = (
    "it ended the call without a greeting, as one does whose room goes by certificates: then give "
    "tls= (antecede chat: --keys) in place of insecure"
)
NO_TLS: Final = (
    "it does not speak TLS: this member goes by certificates, and the other end, if it is a "
    "member, goes without (insecure); all of a room go the same way"
)
_WORDS: Final = {
    "PEER_DID_NOT_RETURN_A_CERTIFICATE": "it showed no certificate",
    "NO_SHARED_CIPHER": "it has no cipher in common with this member",
    "UNSUPPORTED_PROTOCOL": "it speaks an older TLS than 1.3",
}
_NOT_TLS: Final = {
    *("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "RECORD_LAYER_FAILURE", "BAD_RECORD_TYPE"),
    *("PACKET_LENGTH_TOO_LONG", "INVALID_MESSAGE", "HTTPS_PROXY_REQUEST"),
}


def why_no_handshake(error: Exception) -> str:
    """Return in words why somebody did not get as far as showing a certificate that holds."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is none of our authority's ({error.verify_message})"
    if isinstance(error, ssl.SSLError) and error.reason:
        if error.reason in _NOT_TLS:
            return NO_TLS
        alert = error.reason.partition("_ALERT_")[2]
        if alert:
            return f"it does not take our certificate ({alert.replace('_', ' ').lower()})"
        return _WORDS.get(error.reason, str(error))
    if isinstance(error, TimeoutError):
        return "it showed no certificate in time"
    if isinstance(error, ConnectionError) and not str(error):
        return "it ended the connection before it had shown a certificate"
    return str(error) or type(error).__name__


def is_alert(error: Exception | None) -> bool:
    """Tell whether the other end rejects the handshake, as it does a foreign certificate."""
    return isinstance(error, ssl.SSLError) and "_ALERT_" in (error.reason or "")


def is_for_good(error: Exception | None) -> bool:
    """Tell whether to call again would change nothing: the other end's certificate, or that it
    goes without.
    """
    if isinstance(error, ssl.SSLCertVerificationError):
        return True
    return isinstance(error, ssl.SSLError) and error.reason in _NOT_TLS
