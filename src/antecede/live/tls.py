"""TLS 1.3 with certificates of both sides: who one is, and whom one lets in."""

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
from antecede.formatting import shown
from antecede.live.keys import check_issued, member_name
from antecede.live.status import WARN_S


@dataclass(frozen=True)
class Tls:
    """A member's certificate and key, and the authority whose members are let in.

    `certificate`: a PEM file with the certificate, and the key unless `key` names another file.
    `authority`: a PEM file with one certificate or more: whoever has one of theirs may join.
    `password`: of the key. Raises InputError, which names the file and what to do, when one is
    missing or no PEM, the key is not the certificate's, or it has expired or is of another
    authority; LocalError for what is no path.
    """

    certificate: str | os.PathLike[str]
    authority: str | os.PathLike[str]
    key: str | os.PathLike[str] | None = None
    password: str | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        """Refuse at once what would fail at the first connection."""
        for name in ("certificate", "authority", "key"):
            _check_path(name, getattr(self, name), needed=name != "key")
        if not isinstance(self.password, str | None):
            raise LocalError(f"password= is a text, not {shown(self.password)}")
        authority = _read(self.authority)
        try:
            x509.load_pem_x509_certificates(authority)
        except ValueError as error:
            raise InputError("no certificate in PEM", path=str(self.authority)) from error
        try:
            check_issued(self.der, authority, time.time())
        except DecodeError as error:
            raise InputError(
                f"{error}; make a new one, or give its authority", path=str(self.certificate)
            ) from error
        self.client()

    @cached_property
    def der(self) -> bytes:
        """The certificate."""
        try:
            read = x509.load_pem_x509_certificate(_read(self.certificate))
        except ValueError as error:
            raise InputError("no certificate in PEM", path=str(self.certificate)) from error
        return read.public_bytes(serialization.Encoding.DER)

    @property
    def name(self) -> str:
        """The member's name in the certificate."""
        return member_name(self.der)

    @staticmethod
    def name_of(certificate: bytes) -> str:
        """Return the member's name in a certificate (DER). Raises DecodeError without one."""
        return member_name(certificate)

    @cached_property
    def authorities(self) -> bytes:
        """The authority's certificates, PEM."""
        return _read(self.authority)

    def key_pem(self) -> bytes:
        """Return the bytes of the file with the key."""
        return _read(self.certificate if self.key is None else self.key)

    def left_s(self, now_s: float) -> float:
        """Return how long the certificate holds from now on; 0 or less: not any more."""
        read = x509.load_der_x509_certificate(self.der)
        return read.not_valid_after_utc.timestamp() - now_s

    def warnings(self, now_s: float) -> list[str]:
        """Return what will soon be a problem: a certificate that expires in two weeks."""
        left = self.left_s(now_s)
        if left > WARN_S:
            return []
        day = datetime.fromtimestamp(now_s + left, UTC)
        return [f"{Path(self.certificate).name} expires on {day:%Y-%m-%d}"]

    def server(self) -> ssl.SSLContext:
        """Return the context for those who call."""
        context = self._context(ssl.PROTOCOL_TLS_SERVER)
        context.num_tickets = (
            0  # a link is resumed by its frontier, and tickets are bytes for nothing
        )
        return context

    def client(self) -> ssl.SSLContext:
        """Return the context for whom one calls."""
        return self._context(ssl.PROTOCOL_TLS_CLIENT)

    def _context(self, kind: int) -> ssl.SSLContext:
        context = ssl.SSLContext(kind)
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        context.check_hostname = False  # the name in the certificate is the member's, not a host's
        context.verify_mode = ssl.CERT_REQUIRED
        context.options |= ssl.OP_NO_COMPRESSION
        context.load_verify_locations(cadata=self.authorities.decode("ascii", "replace"))
        password = "" if self.password is None else self.password
        try:
            context.load_cert_chain(self.certificate, self.key, password=lambda: password)
        except (ssl.SSLError, OSError, ValueError) as error:
            raise InputError(
                f"certificate and key do not go together, or the password is another: {error}",
                path=str(self.certificate if self.key is None else self.key),
            ) from error
        return context


def _check_path(name: str, path: object, *, needed: bool) -> None:
    if path is None and not needed:
        return
    if not isinstance(path, str | os.PathLike) or not os.fspath(path):
        raise LocalError(
            f"Tls(certificate, authority): {name}= is the path of a PEM file, not {shown(path)}; "
            "`antecede keys` makes certificates for a try"
        )


def _read(path: str | os.PathLike[str]) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise InputError(
            f"cannot be read: {error.strerror or error}; `antecede keys` makes certificates "
            "for a try",
            path=str(path),
        ) from error
