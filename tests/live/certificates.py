"""Certificates of other periods than `keys.make_member` makes."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import serialization

from antecede.live import keys


def set_validity(folder: Path, name: str, end: datetime, begin: datetime | None = None) -> None:
    """Replace a member's certificate by one of another period, signed by the same authority."""
    path = keys.member_path(folder, name)
    pem = path.read_bytes()
    old = x509.load_pem_x509_certificate(pem)
    key = serialization.load_pem_private_key((folder / keys.AUTHORITY_KEY).read_bytes(), None)
    made = (
        x509.CertificateBuilder(old.issuer, old.subject, old.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(begin or old.not_valid_before_utc)
        .not_valid_after(end)
    )
    for one in old.extensions:
        made = made.add_extension(one.value, one.critical)
    new = made.sign(key, None)  # type: ignore[arg-type]
    encoding = serialization.Encoding.PEM
    path.write_bytes(pem.replace(old.public_bytes(encoding), new.public_bytes(encoding)))
