"""Runs all vectors: vectors.py [FOLDER]. Exit 0 where each is answered as it says."""

import json
import pathlib
import sys

import arguments
import cbor
import channel
import crypto
import envelope
import frames
import jsonform
import policy
import record
import scopes
import tables
import tokens
import verify
from cbor import Refused

HERE = pathlib.Path(__file__).resolve().parent


def item(case):
    data = bytes.fromhex(case["bytes"])
    found = cbor.decode(data, case["profile"])
    same(cbor.encode(found), data)
    if "json" in case:
        same(jsonform.to_cbor(case["json"].encode()), data)


def to_json(case):
    same(jsonform.to_cbor(bytes.fromhex(case["text"])).hex(), case.get("cbor"))


def from_json(case):
    same(jsonform.arguments(bytes.fromhex(case["text"])).hex(), case.get("cbor"))


def prints(case):
    same(jsonform.printed(cbor.decode(bytes.fromhex(case["bytes"]), cbor.DATA)), case["text"])


def hashed(case):
    same(crypto.derive(case["domain"], bytes.fromhex(case["bytes"])).hex(), case["hash"])


def is_typed(case):
    value = cbor.decode(bytes.fromhex(case["bytes"]))
    kind = case["type"].removeprefix("uint bits ")
    tables.bits(kind, value) if kind in tables.BITS else tables.typed(kind, value)
    tables.BESIDE.get(kind, bool)(value)


def signature(case):
    key, message, signed = (bytes.fromhex(case[part]) for part in ("key", "message", "signature"))
    crypto.verify(key, b"", message, signed)


def resolve(case):
    manifest, result, args = (cbor.decode(bytes.fromhex(case[part]), cbor.DATA) for part in ("manifest", "released", "args"))
    found = arguments.resolve(manifest, {case["record"]: result}, args)
    same(cbor.encode(found).hex(), case.get("resolved"))


def completes(case):
    data = bytes.fromhex(case["bytes"]) + b" " * case.get("pad", 0)
    try:
        same(envelope.complete(data, case["form"], case["session"]).hex(), case.get("completed"))
    except envelope.Refusal as error:
        same(error.field or case.get("field"), case.get("field", error.field))
        raise


def scope(case):
    scopes.scope(cbor.decode(bytes.fromhex(case["bytes"])))


def at_most(case):
    tables.need(scopes.at_most(*(cbor.decode(bytes.fromhex(case[part])) for part in ("scope", "of"))), "at most")


def permits(case):
    tables.need(scopes.permits(cbor.decode(bytes.fromhex(case["scope"])), case["resource"]), "permitted")


def token(case):
    same(tokens.Token(bytes.fromhex(case["wire"])).id.hex(), case.get("token_id"))


def derive(case):
    child, parent = (tokens.Token(bytes.fromhex(case[part])) for part in ("child", "parent"))
    tokens.derives(child, parent)


def leaf(case):
    same(crypto.leaf(bytes.fromhex(case["record"])).hex(), case["leaf"])


def commitment(case):
    same(record.commitment(case["what"], case["parts"]).hex(), case["hash"])


def message(case):
    preimage, key, signed = (bytes.fromhex(case[part]) for part in ("preimage", "key", "signature"))
    same(record.message(case["parts"]).hex(), preimage.hex())
    crypto.verify(key, b"", preimage, signed)


def is_record(case):
    try:
        record.Record(bytes.fromhex(case["bytes"]))
    except record.Newer:
        same(case.get("newer"), True)
        raise
    except Refused:
        same(case.get("newer"), None)
        raise


def is_object(case):
    tables.need(record.object_name(case["object"], bytes.fromhex(case["bytes"])).hex() == case["name"], "its name")


def log(case, base):
    """A log is the base's, changed."""
    records, prev = [], bytes(32)
    for part in case["records"]:
        taken = base["records"][part[0] : part[1]] if isinstance(part, list) else [part]
        for data in map(bytes.fromhex, taken):
            if isinstance(part, list):
                data = cbor.encode(cbor.decode(data) | {1: len(records), 2: prev})
            records.append(data)
            prev = crypto.leaf(data)
    objects = {name: data for name, data in base["objects"].items() if name not in case["objects"]["remove"]}
    objects = {bytes.fromhex(k): bytes.fromhex(v) for k, v in (objects | case["objects"]["add"]).items()}
    report = verify.verify(records, objects, verify.trust_of(bytes.fromhex(case["trust"])))
    first = report.faults[0] if report.faults else (None, None)
    same((report.verdict, *first), (case["verdict"], case.get("seq"), case.get("fault")))


def is_row(case):
    record.row(bytes.fromhex(case["bytes"]))


def read_policy(case):
    return policy.Policy(jsonform.to_cbor(json.dumps(case["document"]).encode()))


def is_policy(case):
    found = read_policy(case)
    same(found.hash.hex(), case.get("hash"))
    same(found.bytes.hex(), case.get("canonical", found.bytes.hex()))


def decide(case):
    same(read_policy(case).decide(case["given"]), case["decision"])


def same(found, wanted):
    if found != wanted:
        raise AssertionError(f"{found!r}, wanted {wanted!r}")


KINDS = {
    "item": item, "json": to_json, "arguments": from_json, "resolve": resolve, "print": prints, "hash": hashed, "type": is_typed,
    "signature": signature, "envelope": completes,
    "admission": lambda case: envelope.admit(case["faults"]), "scope": scope, "at_most": at_most, "permits": permits,
    "error": lambda case: envelope.error(bytes.fromhex(case["bytes"]), case["tx"]),
    "result": lambda case: envelope.result(bytes.fromhex(case["bytes"])),
    "channel": lambda case: same(
        channel.channel(bytes.fromhex(case["bytes"]), case["by"], case.get("verb")), case.get("reason")),
    "frame": lambda case: same(frames.frame(bytes.fromhex(case["bytes"]), case["by"]), case.get("reason")),
    "token": token, "derive": derive, "policy": is_policy, "decide": decide,
    "leaf": leaf, "commitment": commitment, "message": message, "record": is_record, "object": is_object, "row": is_row,
}


def run(case, base):
    """What went wrong with a vector; nothing where it is answered as it says."""
    try:
        if case["kind"] == "log":
            return log(case, base)
        KINDS[case["kind"]](case)
        return None if case["result"] == "valid" else "taken"
    except Refused as error:
        said = str(error) if str(error) in tables.REASONS else "bad_token"
        if case["result"] == "valid":
            return f"refused: {error}"
        return None if case.get("reason", said) == said else f"{said}, wanted {case['reason']}"
    except AssertionError as error:
        return f"differs: {error}"


def main(folder):
    count, wrong = 0, 0
    for path in sorted(folder.rglob("*.json")):
        file = json.loads(path.read_text())
        for case in file.get("cases", []):
            count += 1
            fault = run(case, file.get("base"))
            if fault:
                wrong += 1
                print(f"{case['id']} {case['requirement']}: {fault}: {case['comment']}")
    print(f"{count - wrong} passed, {wrong} failed")
    return 1 if wrong or not count else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else HERE.parent / "vectors"))
