"""Hashes and signatures: docs/spec/log.md, Hashes, and docs/spec/tokens.md, Ed25519."""

import hashlib

import blake3
import nacl.bindings
import nacl.exceptions

import cbor
from tables import DOMAINS


def derive(domain, data):
    """A hash in one of the domains."""
    return blake3.blake3(data, derive_key_context=DOMAINS[domain]).digest()


def commit(domain, *items):
    """A hash over an array of items."""
    return derive(domain, cbor.encode(list(items)))


def leaf(record):
    return hashlib.sha256(b"\0" + record).digest()
