"""Certificates for a try: an authority for the room, and one for each member.

A member's name is in its certificate twice: as a URI `antecede:NAME`, percent-encoded, which is
what counts, and as the common name, for people. Keys are Ed25519. For more than a try an authority
of one's own does as well: `member_name` takes the common name where there is no such URI.
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
"""Clocks of hosts differ: what is made now holds since a little while ago."""
COMMON_NAME_LENGTH = 64


def make_authority(folder: str | os.PathLike[str], *, days: int = 10 * DAYS) -> tuple[Path, Path]:
    """Make an authority in a folder: (certificate, key). Raises InputError where there is one."""
    folder = Path(folder)
    certificate, secret = folder / AUTHORITY, folder / AUTHORITY_KEY
    for path in (certificate, secret):
        if path.exists():
            raise InputError("an authority is there already", path=str(path))
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
    """Make NAME.pem, key and certificate, signed by the authority in the folder.

    `hosts`: names or addresses where it listens, for tools that look at them; members go by the
    name. Raises LocalError for what is no member's name, InputError where the authority is missing
    or the file is there already, unless `force`.
    """
    path = member_path(folder, name)
    if path.exists() and not force:
        raise InputError("is there already; force replaces it", path=str(path))
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
    """Return the file of a member in a folder. Raises LocalError for what is no member's name.

    It has the member's name; what means something in paths is percent-encoded, and so is the whole
    where the file system could take it for another's: it has no such letters, or writes them
    in two ways (of Unicode's normal forms one is used).
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
    """Return the name in a certificate (DER). Raises DecodeError without one."""
    try:
        read = x509.load_der_x509_certificate(certificate)
        names = read.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        uris = names.get_values_for_type(x509.UniformResourceIdentifier)
    except x509.ExtensionNotFound:
        uris = []
    except (ValueError, UnsupportedAlgorithm) as error:
        raise DecodeError(f"no certificate: {error}") from error
    found = [unquote(uri[len(SCHEME) :]) for uri in uris if uri.startswith(SCHEME)]
    if not found:
        common = read.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
        found = [str(one.value) for one in common]
    if len(found) != 1:
        raise DecodeError(f"a certificate with {len(found)} names of members; one is needed")
    try:
        return check_name(found[0])
    except LocalError as error:
        raise DecodeError(f"a certificate for what is no name: {error}") from error


def check_issued(certificate: bytes, authority: bytes, now_s: float) -> None:
    """Check that the authority (PEM) issued a certificate (DER), and that it holds at a time.

    Raises DecodeError in words otherwise. `now_s`: seconds since 1970.
    """
    now = datetime.datetime.fromtimestamp(now_s, datetime.UTC)
    try:
        read = x509.load_der_x509_certificate(certificate)
    except ValueError as error:
        raise DecodeError(f"no certificate: {error}") from error
    for one in x509.load_pem_x509_certificates(authority):
        try:
            read.verify_directly_issued_by(one)
        except (ValueError, TypeError, InvalidSignature):
            continue
        if not read.not_valid_before_utc <= now <= read.not_valid_after_utc:
            raise DecodeError(
                f"a certificate that holds from {read.not_valid_before_utc:%Y-%m-%d} to "
                f"{read.not_valid_after_utc:%Y-%m-%d}"
            )
        return
    raise DecodeError("a certificate of another authority")


def _authority(folder: Path) -> tuple[x509.Certificate, ed25519.Ed25519PrivateKey]:
    try:
        certificate = x509.load_pem_x509_certificate((folder / AUTHORITY).read_bytes())
        key = serialization.load_pem_private_key((folder / AUTHORITY_KEY).read_bytes(), None)
    except OSError as error:
        raise InputError(
            f"the authority's {error.strerror or error}: make one first, or name its folder",
            path=str(error.filename),
        ) from error
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise InputError(
            f"no authority's certificate and key: {error}", path=str(folder)
        ) from error
    if not isinstance(key, ed25519.Ed25519PrivateKey):
        raise InputError("not an Ed25519 key", path=str(folder / AUTHORITY_KEY))
    return certificate, key


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ed25519.Ed25519PublicKey, days: int
) -> x509.CertificateBuilder:
    if type(days) is not int or not 0 < days <= 100 * DAYS:
        raise LocalError(f"a certificate holds for 1 to {100 * DAYS} days, not {days!r}")
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
        raise LocalError(f"{host!r:.80} is no name or address of a host") from error


def _pem(key: ed25519.Ed25519PrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )


def _write(path: Path, data: bytes, mode: int) -> None:
    """Write a file that is never readable by more than its mode says, whole or not at all."""
    draft = path.with_name(path.name + ".new")
    with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode), "wb") as file:
        os.fchmod(file.fileno(), mode)
        file.write(data)
    draft.replace(path)
