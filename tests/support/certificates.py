"""Certificates for tests: an authority, a server on loopback and a client, made in memory."""

from __future__ import annotations

import datetime as dt
import ipaddress
import ssl
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class Certificates:
    """Everything as PEM."""

    authority: bytes
    server: bytes
    server_key: bytes
    client: bytes
    client_key: bytes

    def server_context(self, folder: Path, *, ask_client: bool = False) -> ssl.SSLContext:
        """What a server needs; with `ask_client` it wants a certificate of the client."""
        chain, key = folder / "server.pem", folder / "server.key"
        chain.write_bytes(self.server)
        key.write_bytes(self.server_key)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(chain, key)
        if ask_client:
            context.load_verify_locations(cadata=self.authority.decode())
            context.verify_mode = ssl.CERT_REQUIRED
        return context


def make_certificates(*, server_names: tuple[str, ...] = ("127.0.0.1",)) -> Certificates:
    """A new authority and what it signed. The authority has no key identifier, like those of older clusters."""
    authority_key = ec.generate_private_key(ec.SECP256R1())
    authority = _certificate("authority", authority_key, "authority", authority_key, authority=True)
    server_key, client_key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    return Certificates(
        authority=authority,
        server=_certificate("server", server_key, "authority", authority_key, names=server_names),
        server_key=_pem(server_key),
        client=_certificate("client", client_key, "authority", authority_key),
        client_key=_pem(client_key),
    )


def new_private_key() -> str:
    """A private key as PEM, which belongs to no certificate."""
    return _pem(ec.generate_private_key(ec.SECP256R1())).decode()


def _certificate(
    subject: str,
    key: ec.EllipticCurvePrivateKey,
    issuer: str,
    issuer_key: ec.EllipticCurvePrivateKey,
    *,
    names: tuple[str, ...] = (),
    authority: bool = False,
) -> bytes:
    now = dt.datetime.now(dt.UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, subject)]))
        .issuer_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, issuer)]))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(hours=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=authority, path_length=None), critical=True)
    )
    if names:
        alternatives = [_alternative(name) for name in names]
        builder = builder.add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
    return builder.sign(issuer_key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


def _alternative(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
