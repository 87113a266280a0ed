"""Certified seals: signatures by which members hand on a member's batches and cannot forge them.

Each life of a member has a key pair of its own (Ed25519). Its certificate's key signs the *owner's
statement* once: that this lane has that key. From then on the lane's key signs every batch. Who
gets a batch from somebody else than its owner checks the statement and the seal.

    statement   block(certificate, DER) block(public key) block(signature)
    signed      b"antecede lane 1", block(room), block(lane), block(public key)
    seal        64 bytes over b"antecede batch 1", block(lane), number, blake2b(wire)
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed448, ed25519, padding, rsa

from antecede.core.clocks.encoding import ByteReader, block
from antecede.errors import DecodeError, InputError
from antecede.live.events import member_of
from antecede.live.keys import check_issued, member_name
from antecede.live.tls import Tls

STATEMENT, BATCH = b"antecede lane 1", b"antecede batch 1"
MAX_OWNER = 1 << 14


class CertifiedSeals:
    """Seals one's own batches by a key of this lane, and checks the others'.

    `secret`: the lane's key of an earlier run, as `secret` returns it; without one a new one is
    drawn. `clock`: seconds since 1970, asked when a certificate is checked.
    """

    def __init__(
        self, tls: Tls, room: str, lane: str, clock: Callable[[], float], secret: bytes = b""
    ) -> None:
        self._tls, self._room, self._lane, self._clock = tls, room.encode(), lane, clock
        if secret:
            self._key = ed25519.Ed25519PrivateKey.from_private_bytes(secret)
        else:
            self._key = ed25519.Ed25519PrivateKey.generate()
        public = self._key.public_key().public_bytes_raw()
        signature = _sign(_load_key(tls), self._claim(lane, public))
        statement = block(tls.der) + block(public) + block(signature)
        self._owners = {lane: statement}
        self._publics = {lane: public}
        self._keys = {lane: self._key.public_key()}

    @property
    def secret(self) -> bytes:
        """The lane's key, for the store: whoever has it can speak in this lane."""
        return self._key.private_bytes_raw()

    def _claim(self, lane: str, public: bytes) -> bytes:
        return STATEMENT + block(self._room) + block(lane.encode()) + block(public)

    def owner(self, lane: str) -> bytes:
        """Return the statement of a lane's owner; empty: it was not heard."""
        return self._owners.get(lane, b"")

    def learn(self, lane: str, owner: bytes) -> None:
        """Take the statement of a lane's owner. Raises DecodeError where it is not the owner's."""
        if self._owners.get(lane) == owner:
            return
        if len(owner) > MAX_OWNER:
            raise DecodeError(f"{len(owner)} bytes to show whose {lane} is")
        certificate, public, signature = _parts(owner)
        check_issued(certificate, self._tls.authorities, self._clock())
        if (name := member_name(certificate)) != member_of(lane):
            raise DecodeError(f"{lane} is claimed with the certificate of {name}")
        if self._publics.get(lane, public) != public:
            raise DecodeError(f"{lane} is claimed with a second key")
        try:
            key = x509.load_der_x509_certificate(certificate).public_key()
            _verify(key, signature, self._claim(lane, public))
            self._keys[lane] = ed25519.Ed25519PublicKey.from_public_bytes(public)
        except (InvalidSignature, UnsupportedAlgorithm, ValueError, TypeError) as error:
            raise DecodeError(f"{lane} is claimed without its owner's signature") from error
        self._owners[lane], self._publics[lane] = owner, public

    def recall(self, lane: str, owner: bytes) -> None:
        """Take up again what was learnt, and checked, before a restart.

        The certificate may have expired since: who is shown it judges that.
        """
        if lane in self._owners:
            return
        _, public, _ = _parts(owner)
        try:
            self._keys[lane] = ed25519.Ed25519PublicKey.from_public_bytes(public)
        except ValueError as error:
            raise DecodeError(f"no key of {lane}: {error}") from error
        self._owners[lane], self._publics[lane] = owner, public

    def seal(self, number: int, wire: bytes) -> bytes:
        """Return the seal of a batch of one's own."""
        return self._key.sign(_sealed(self._lane, number, wire))

    def check(self, lane: str, number: int, wire: bytes, seal: bytes) -> None:
        """Raise DecodeError unless the owner of the lane sealed this batch."""
        key = self._keys.get(lane)
        if key is None:
            raise DecodeError(f"batch {number} of {lane}, of which nobody has shown the owner")
        try:
            key.verify(seal, _sealed(lane, number, wire))
        except InvalidSignature as error:
            raise DecodeError(
                f"batch {number} of {lane} with a seal that is not its owner's"
            ) from error


def _parts(owner: bytes) -> tuple[bytes, bytes, bytes]:
    """Return certificate, public key and signature of an owner's statement."""
    reader = ByteReader(owner)
    parts = reader.block(), reader.block(), reader.block()
    reader.finish()
    return parts


def _sealed(lane: str, number: int, wire: bytes) -> bytes:
    digest = hashlib.blake2b(wire, digest_size=32).digest()
    return BATCH + block(lane.encode()) + number.to_bytes(8, "big") + digest


def _load_key(tls: Tls) -> Any:
    path = str(tls.certificate if tls.key is None else tls.key)
    password = None if tls.password is None else tls.password.encode()
    try:
        return serialization.load_pem_private_key(tls.key_pem(), password)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise InputError(f"no key that can be read: {error}", path=path) from error


def _sign(key: Any, data: bytes) -> bytes:
    if isinstance(key, ed25519.Ed25519PrivateKey | ed448.Ed448PrivateKey):
        return key.sign(data)
    if isinstance(key, ec.EllipticCurvePrivateKey):
        return key.sign(data, ec.ECDSA(hashes.SHA256()))
    if isinstance(key, rsa.RSAPrivateKey):
        return key.sign(data, _PSS, hashes.SHA256())
    raise InputError(f"keys of members are Ed25519, ECDSA or RSA, not {type(key).__name__}")


def _verify(key: Any, signature: bytes, data: bytes) -> None:
    if isinstance(key, ed25519.Ed25519PublicKey | ed448.Ed448PublicKey):
        key.verify(signature, data)
    elif isinstance(key, ec.EllipticCurvePublicKey):
        key.verify(signature, data, ec.ECDSA(hashes.SHA256()))
    elif isinstance(key, rsa.RSAPublicKey):
        key.verify(signature, data, _PSS, hashes.SHA256())
    else:
        raise TypeError(type(key).__name__)


_PSS = padding.PSS(mgf=padding.MGF1(hashes.SHA256()), salt_length=padding.PSS.DIGEST_LENGTH)
