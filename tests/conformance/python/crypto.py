"""Hashes and signatures: docs/spec/log.md, Hashes, and docs/spec/tokens.md, Ed25519."""

import functools
import hashlib

import blake3
import nacl.bindings
import nacl.exceptions

import cbor
from tables import DOMAINS, need


def derive(domain, data):
    """A hash in one of the domains."""
    return blake3.blake3(data, derive_key_context=DOMAINS[domain]).digest()


def commit(domain, *items):
    """A hash over an array of items."""
    return derive(domain, cbor.encode(list(items)))


def leaf(record):
    return hashlib.sha256(b"\0" + record).digest()


# Ed25519: docs/spec/tokens.md. PyNaCl refuses what the text refuses of a signature.

_P = 2**255 - 19
_D = -121665 * pow(121666, _P - 2, _P) % _P


def _point(encoded):
    """The coordinates of a canonically encoded point."""
    y = int.from_bytes(encoded, "little")
    sign, y = y >> 255, y & (1 << 255) - 1
    need(y < _P, "a canonical coordinate")
    square = (y * y - 1) * pow(_D * y * y + 1, _P - 2, _P) % _P
    x = pow(square, (_P + 3) // 8, _P)
    if (x * x - square) % _P:
        x = x * pow(2, (_P - 1) // 4, _P) % _P
    need((x * x - square) % _P == 0 and (x or not sign), "a point")
    return (x if x & 1 == sign else _P - x), y


def _double(point):
    x, y = point
    product = _D * x * x * y * y % _P
    return (
        2 * x * y * pow(1 + product, _P - 2, _P) % _P,
        (y * y + x * x) * pow(1 - product, _P - 2, _P) % _P,
    )


@functools.lru_cache(maxsize=None)
def public_key(key):
    """Refuses a key that is no canonical point, or of small order."""
    need(isinstance(key, bytes) and len(key) == 32, "a key")
    need(_double(_double(_double(_point(key)))) != (0, 1), "a key that is not of small order")


def is_signed(key, context, message, signature):
    try:
        nacl.bindings.crypto_sign_open(signature + context + message, key)
        return True
    except nacl.exceptions.BadSignatureError:
        return False


def verify(key, context, message, signature):
    public_key(key)
    need(is_signed(key, context, message, signature), "a signature")
