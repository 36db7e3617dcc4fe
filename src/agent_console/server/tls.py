"""TLS from two files: the certificate with its chain, and its private key."""

import ssl
import stat
from datetime import UTC, datetime
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from agent_console.domain.errors import ConfigError
from agent_console.domain.records import shown_time


def tls_context(certificate: Path, key: Path) -> ssl.SSLContext:
    """TLS 1.2 and newer with this certificate. It is read now: a renewed one is used after a restart."""
    _require_certificate(certificate, datetime.now(UTC))
    _require_key(key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(certificate, key)
    except ssl.SSLError as error:
        raise ConfigError(
            f"The certificate in {certificate} and the key in {key} can't be used together: "
            f"{error.reason or 'they do not fit'}.",
            hint="Give the key that the certificate was made for.",
            details={"certificate": str(certificate), "key": str(key)},
        ) from error
    return context


def _require_certificate(path: Path, now: datetime) -> None:
    try:
        leaf = x509.load_pem_x509_certificates(_read(path, "certificate"))[0]
    except ValueError as error:
        raise _wrong(
            path, "holds no certificate in PEM", "Give the certificate, followed by its chain."
        ) from error
    if leaf.not_valid_after_utc < now:
        ended = shown_time(leaf.not_valid_after_utc)
        raise _wrong(path, f"holds a certificate that expired at {ended}", "Renew it; no client would accept it.")
    if leaf.not_valid_before_utc > now:
        begins = shown_time(leaf.not_valid_before_utc)
        raise _wrong(path, f"holds a certificate that is valid only from {begins}", "Check this machine's clock.")


def _require_key(path: Path) -> None:
    content = _read(path, "key")
    if path.stat().st_mode & stat.S_IRWXO:
        raise _wrong(path, "can be read or changed by everybody", f"Run: chmod 600 {path}")
    try:
        load_pem_private_key(content, None)
    except TypeError as error:
        hint = "Nobody is there to be asked for it: store the key without one, readable by the server only."
        raise _wrong(path, "holds a key that needs a passphrase", hint) from error
    except (ValueError, UnsupportedAlgorithm) as error:
        raise _wrong(path, "holds no private key in PEM", "Give the certificate's own private key.") from error


def _read(path: Path, what: str) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ConfigError(
            f"The TLS {what} can't be read from {path}: {error.strerror or error}.",
            hint=f"Check --tls-{'cert' if what == 'certificate' else 'key'}, or the profile's key of that name.",
            details={"file": str(path)},
        ) from error


def _wrong(path: Path, problem: str, hint: str) -> ConfigError:
    return ConfigError(f"The TLS file {path} {problem}.", hint=hint, details={"file": str(path)})
