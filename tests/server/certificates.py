"""Certificates of an authority that only the tests know."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

DAY = timedelta(days=1)


@dataclass(frozen=True)
class TlsFiles:
    authority: Path
    certificate: Path
    key: Path


@dataclass(frozen=True)
class Authority:
    key: ec.EllipticCurvePrivateKey
    certificate: x509.Certificate


def _name(common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])


def _builder(
    subject: str, key: ec.EllipticCurvePrivateKey, begins: datetime, ends: datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(_name(subject))
        .issuer_name(_name("authority of the tests"))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(begins)
        .not_valid_after(ends)
    )


@cache
def authority() -> Authority:
    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC)
    builder = _builder("authority of the tests", key, now - DAY, now + DAY)
    usage = x509.KeyUsage(True, False, False, False, False, True, True, False, False)
    certificate = (
        builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    return Authority(key, certificate)


def tls_files(
    folder: Path, *, begins: timedelta = -DAY, ends: timedelta = DAY, passphrase: bytes | None = None
) -> TlsFiles:
    """A certificate for 127.0.0.1, its key, and the authority that vouches for it."""
    trusted, key, now = authority(), ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC)
    names = x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1")), x509.DNSName("localhost")])
    known = x509.AuthorityKeyIdentifier.from_issuer_public_key(trusted.key.public_key())
    certificate = (
        _builder("server of the tests", key, now + begins, now + ends)
        .add_extension(names, critical=False)
        .add_extension(known, critical=False)
        .sign(trusted.key, hashes.SHA256())
    )
    files = TlsFiles(folder / "ca.pem", folder / "server.pem", folder / "server.key")
    files.authority.write_bytes(trusted.certificate.public_bytes(serialization.Encoding.PEM))
    files.certificate.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    sealed = serialization.BestAvailableEncryption(passphrase) if passphrase else serialization.NoEncryption()
    files.key.write_bytes(key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, sealed))
    files.key.chmod(0o600)
    return files
