"""TLS 1.3 with certificates of both sides."""

from __future__ import annotations

import os
import ssl
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import serialization

from antecede.errors import DecodeError, InputError, LocalError
from antecede.formatting import quote
from antecede.live.keys import check_issued, member_name
from antecede.live.status import WARN_S


@dataclass(frozen=True)
class Tls:
    """Certificate and key of a member, and the authority of the admitted members.

    `certificate`: PEM file with the certificate, and with the key unless `key` names another file.
    `authority`: PEM file with one or more certificates; holders of certificates from them may join.
    `password`: password of the key.

    Raises InputError, with the file and the remedy, for a missing file, one that is not PEM, a key
    of another certificate, and a certificate that has expired or has another authority. Raises
    LocalError for values that are no paths.
    """

    certificate: str | os.PathLike[str]
    authority: str | os.PathLike[str]
    key: str | os.PathLike[str] | None = None
    password: str | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        for name in ("certificate", "authority", "key"):
            _check_path(name, getattr(self, name), needed=name != "key")
        if not isinstance(self.password, str | None):
            raise LocalError(f"password= is a {type(self.password).__name__}; expected a text")
        authority = _read(self.authority)
        try:
            x509.load_pem_x509_certificates(authority)
        except ValueError as error:
            raise InputError("not a PEM certificate", path=str(self.authority)) from error
        try:
            check_issued(self.der, authority, time.time())
        except DecodeError as error:
            raise InputError(
                f"{error}; renew it, or give its authority", path=str(self.certificate)
            ) from error
        self.client()

    @cached_property
    def der(self) -> bytes:
        """Certificate in DER."""
        try:
            read = x509.load_pem_x509_certificate(_read(self.certificate))
        except ValueError as error:
            raise InputError("not a PEM certificate", path=str(self.certificate)) from error
        return read.public_bytes(serialization.Encoding.DER)

    @property
    def name(self) -> str:
        """The member's name in the certificate."""
        return member_name(self.der)

    @staticmethod
    def name_of(certificate: bytes) -> str:
        """Return the member's name in a certificate (DER). Raises DecodeError without a name."""
        return member_name(certificate)

    @cached_property
    def authorities(self) -> bytes:
        """Certificates of the authority in PEM."""
        return _read(self.authority)

    def key_pem(self) -> bytes:
        """Return the bytes of the file with the key."""
        return _read(self.certificate if self.key is None else self.key)

    def validity_s(self, now_s: float) -> float:
        """Return the remaining validity of the certificate; 0 or less: expired."""
        read = x509.load_der_x509_certificate(self.der)
        return read.not_valid_after_utc.timestamp() - now_s

    def warnings(self, now_s: float) -> list[str]:
        """Return warnings: a certificate that expires within two weeks."""
        left = self.validity_s(now_s)
        if left > WARN_S:
            return []
        day = datetime.fromtimestamp(now_s + left, UTC)
        return [f"{Path(self.certificate).name} expires on {day:%Y-%m-%d}"]

    def server(self) -> ssl.SSLContext:
        """Return the context for incoming connections."""
        context = self._context(ssl.PROTOCOL_TLS_SERVER)
        context.num_tickets = 0  # a connection resumes by its frontier, without tickets
        return context

    def client(self) -> ssl.SSLContext:
        """Return the context for outgoing connections."""
        return self._context(ssl.PROTOCOL_TLS_CLIENT)

    def _context(self, kind: int) -> ssl.SSLContext:
        context = ssl.SSLContext(kind)
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        context.check_hostname = False  # the certificate names a member, not a host
        context.verify_mode = ssl.CERT_REQUIRED
        context.options |= ssl.OP_NO_COMPRESSION
        context.load_verify_locations(cadata=self.authorities.decode("ascii", "replace"))
        password = "" if self.password is None else self.password
        try:
            context.load_cert_chain(self.certificate, self.key, password=lambda: password)
        except (ssl.SSLError, OSError, ValueError) as error:
            raise InputError(
                f"key does not match the certificate, or the password is wrong: {error}",
                path=str(self.certificate if self.key is None else self.key),
            ) from error
        return context


def _check_path(name: str, path: object, *, needed: bool) -> None:
    if path is None and not needed:
        return
    if not isinstance(path, str | os.PathLike) or not os.fspath(path):
        raise LocalError(
            f"Tls: {name}={quote(path)} is invalid; expected the path of a PEM file "
            "(`antecede certs` creates test certificates)"
        )


def _read(path: str | os.PathLike[str]) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise InputError(
            f"cannot be read: {error.strerror or error}; create test certificates with "
            "`antecede certs`",
            path=str(path),
        ) from error
