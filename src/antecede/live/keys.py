"""Test certificates: an authority for the group, and a certificate for each member.

A certificate contains the member's name as the URI `antecede:NAME`, percent-encoded. The common
name repeats it for readers. Keys are Ed25519. In production use your own authority: without such a
URI, `member_name` returns the common name.
"""

from __future__ import annotations

import contextlib
import datetime
import ipaddress
import os
import unicodedata
from collections.abc import Iterable
from pathlib import Path
from typing import Final
from urllib.parse import quote, unquote

from antecede.errors import DecodeError, InputError, LocalError, MissingExtraError
from antecede.live.events import check_name

try:
    from cryptography import x509
    from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import ed25519
    from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
except ImportError as error:
    raise MissingExtraError("certificates of live peers", "live") from error

AUTHORITY, AUTHORITY_KEY = "ca.pem", "ca.key"
SCHEME: Final = "antecede:"
DAYS: Final = 365
BACKDATED = datetime.timedelta(minutes=5)
"""Certificates are valid from a little earlier, since clocks of hosts differ."""
COMMON_NAME_LENGTH = 64


def make_authority(folder: str | os.PathLike[str], *, days: int = 10 * DAYS) -> tuple[Path, Path]:
    """Create an authority in a folder: (certificate, key). Raises InputError if one exists."""
    folder = Path(folder)
    certificate, secret = folder / AUTHORITY, folder / AUTHORITY_KEY
    for path in (certificate, secret):
        if path.exists():
            raise InputError(
                "an authority exists already; delete it, or use another folder", path=str(path)
            )
    key = ed25519.Ed25519PrivateKey.generate()
    name = _subject("antecede authority")
    made = (
        _builder(name, name, key.public_key(), days)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs_certificates=True), critical=True)
        .sign(key, None)
    )
    folder.mkdir(parents=True, exist_ok=True)
    _write(secret, _pem(key), 0o600)
    _write(certificate, made.public_bytes(serialization.Encoding.PEM), 0o644)
    return certificate, secret


def make_member(
    folder: str | os.PathLike[str],
    name: str,
    *,
    hosts: Iterable[str] = (),
    days: int = DAYS,
    force: bool = False,
) -> Path:
    """Create NAME.pem, key and certificate, signed by the authority in the folder. `hosts`: names
    or addresses of the listener, for other tools; members compare only the name. Raises LocalError
    for an invalid name, InputError without an authority, or if the file exists and `force` is not
    set.
    """
    path = member_path(folder, name)
    if path.exists() and not force:
        raise InputError("exists already; replace it with force", path=str(path))
    authority, secret = _authority(Path(folder))
    key = ed25519.Ed25519PrivateKey.generate()
    names = [x509.UniformResourceIdentifier(SCHEME + quote(name, safe=""))]
    made = (
        _builder(_subject(name), authority.subject, key.public_key(), days)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs_certificates=False), critical=True)
        .add_extension(
            x509.ExtendedKeyUsage(
                [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
            ),
            critical=False,
        )
        .add_extension(x509.SubjectAlternativeName([*names, *map(_host, hosts)]), critical=False)
        .sign(secret, None)
    )
    _write(path, _pem(key) + made.public_bytes(serialization.Encoding.PEM), 0o600)
    return path


def member_path(folder: str | os.PathLike[str], name: str) -> Path:
    """Return the file of a member in a folder. Raises LocalError for an invalid name. The file has
    the member's name. Characters with a meaning in paths are percent-encoded. So is the whole name
    if the file system cannot represent it or has two forms of it (Unicode NFC is used).
    """
    folder = Path(folder)
    plain = unicodedata.normalize("NFC", check_name(name)) == name
    with contextlib.suppress(UnicodeEncodeError):
        os.fsencode(name)
        if plain:
            return (
                folder / f"{''.join(c if ord(c) > 127 else quote(c, safe=' ') for c in name)}.pem"
            )
    return folder / f"{quote(name, safe=' ')}.pem"


def member_name(certificate: bytes) -> str:
    """Return the member's name in a certificate (DER). Raises DecodeError without one."""
    try:
        read = x509.load_der_x509_certificate(certificate)
        names = read.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        uris = names.get_values_for_type(x509.UniformResourceIdentifier)
    except x509.ExtensionNotFound:
        uris = []
    except (ValueError, UnsupportedAlgorithm) as error:
        raise DecodeError(f"invalid certificate: {error}") from error
    found = [unquote(uri[len(SCHEME) :]) for uri in uris if uri.startswith(SCHEME)]
    if not found:
        common = read.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
        found = [str(one.value) for one in common]
    if len(found) != 1:
        raise DecodeError(f"certificate has {len(found)} member names; expected one")
    try:
        return check_name(found[0])
    except LocalError as error:
        raise DecodeError(f"certificate with an {error}") from error


def check_issued(certificate: bytes, authority: bytes, now_s: float) -> None:
    """Check that the authority (PEM) issued a certificate (DER), and that it is valid at a time.
    Raises DecodeError otherwise. `now_s`: seconds since 1970.
    """
    now = datetime.datetime.fromtimestamp(now_s, datetime.UTC)
    try:
        read = x509.load_der_x509_certificate(certificate)
    except ValueError as error:
        raise DecodeError(f"invalid certificate: {error}") from error
    for one in x509.load_pem_x509_certificates(authority):
        try:
            read.verify_directly_issued_by(one)
        except (ValueError, TypeError, InvalidSignature):
            continue
        if not read.not_valid_before_utc <= now <= read.not_valid_after_utc:
            raise DecodeError(
                f"certificate is valid from {read.not_valid_before_utc:%Y-%m-%d} to "
                f"{read.not_valid_after_utc:%Y-%m-%d}"
            )
        return
    raise DecodeError("certificate of another authority")


def _authority(folder: Path) -> tuple[x509.Certificate, ed25519.Ed25519PrivateKey]:
    try:
        certificate = x509.load_pem_x509_certificate((folder / AUTHORITY).read_bytes())
        key = serialization.load_pem_private_key((folder / AUTHORITY_KEY).read_bytes(), None)
    except OSError as error:
        raise InputError(
            f"authority: {error.strerror or error}; create one first, or give its folder",
            path=str(error.filename),
        ) from error
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise InputError(
            f"invalid certificate or key of the authority: {error}", path=str(folder)
        ) from error
    if not isinstance(key, ed25519.Ed25519PrivateKey):
        raise InputError("not an Ed25519 key", path=str(folder / AUTHORITY_KEY))
    return certificate, key


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ed25519.Ed25519PublicKey, days: int
) -> x509.CertificateBuilder:
    if type(days) is not int or not 0 < days <= 100 * DAYS:
        raise LocalError(f"days={days!r} is invalid; expected 1 to {100 * DAYS}")
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - BACKDATED)
        .not_valid_after(now + datetime.timedelta(days=days))
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
    )


def _subject(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name[:COMMON_NAME_LENGTH])])


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        **dict.fromkeys(
            (
                *("content_commitment", "key_encipherment", "data_encipherment"),
                *("key_agreement", "encipher_only", "decipher_only"),
            ),
            False,
        ),
    )


def _host(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        pass
    try:
        return x509.DNSName(host.encode("idna").decode())
    except UnicodeError as error:
        raise LocalError(f"invalid host {host!r:.80}; expected a name or an address") from error


def _pem(key: ed25519.Ed25519PrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )


def _write(path: Path, data: bytes, mode: int) -> None:
    """Write a file atomically, never readable beyond its mode."""
    draft = path.with_name(path.name + ".new")
    with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode), "wb") as file:
        os.fchmod(file.fileno(), mode)
        file.write(data)
    draft.replace(path)
