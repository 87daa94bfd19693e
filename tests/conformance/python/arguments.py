"""Arguments: references, defaults and nulls: docs/spec/calls.md, Arguments."""

import cbor
import tables
from cbor import Refused
from tables import need

REFERENCES_MAX, PARTS_MAX, DEPTH = 16, 1 << 20, cbor.DEPTH[cbor.DATA]
KIND, PRESENCE = tables.CODES["ParamType"], tables.CODES["Presence"]
IS = {
    "any": lambda v: True, "boolean": lambda v: type(v) is bool, "integer": lambda v: type(v) is int,
    "number": lambda v: type(v) in (int, float), "bytes": lambda v: type(v) is bytes,
    "list": lambda v: type(v) is list, "map": lambda v: type(v) is dict,
    "argv": lambda v: type(v) is list and all(type(one) is str for one in v),
    "text": lambda v: type(v) is str, "path": lambda v: type(v) is str, "code": lambda v: type(v) is str,
}


def reference(value):
    """The record and the path of a reference."""
    need(type(value) is dict and set(value) == {"record", "path"}, "bad_reference")
    need(tables.is_uint(value["record"]) and type(value["path"]) is list, "bad_reference")
    need(len(value["path"]) <= DEPTH, "bad_reference")
    return value["record"], value["path"]


def references(value, found):
    """All references, in the order in which they stand."""
    if type(value) is dict and set(value) == {"$ref"}:
        found.append(reference(value["$ref"]))
        need(len(found) <= REFERENCES_MAX, "bad_reference")
    elif type(value) is dict and set(value) != {"$lit"}:
        for key in sorted(value, key=cbor.encode):
            references(value[key], found)
    elif type(value) is list:
        for one in value:
            references(one, found)
    return found


def pick(result, path):
    for step in path:
        if type(step) is str and type(result) is dict:
            need(step in result, "unknown_reference")
        else:
            need(tables.is_uint(step) and type(result) is list and step < len(result), "unknown_reference")
        result = result[step]
    return result


def put(value, parts):
    if type(value) is dict:
        if set(value) == {"$ref"}:
            return next(parts)
        if set(value) == {"$lit"}:
            return value["$lit"]
        return {key: put(value[key], parts) for key in sorted(value, key=cbor.encode)}
    return [put(one, parts) for one in value] if type(value) is list else value


def permits_null(schema):
    if type(schema) is not dict:
        return schema is True
    types = schema.get("type")
    listed = lambda key: schema[key] if type(schema[key]) is list else []
    return all((
        "type" not in schema or schema.get("nullable") is True or types == "null"
        or type(types) is list and "null" in types,
        "enum" not in schema or any(one is None for one in listed("enum")),
        schema.get("const") is None,
        "anyOf" not in schema or any(map(permits_null, listed("anyOf"))),
        "oneOf" not in schema or any(map(permits_null, listed("oneOf"))),
        "allOf" not in schema or all(map(permits_null, listed("allOf"))),
    ))


def fits(param, value):
    kind = next(name for name, code in KIND.items() if code == param[2])
    need(IS[kind](value), "bad_argument")
    size = value if type(value) is int else None
    if type(value) in (str, bytes, list, dict):
        size = len(value.encode() if type(value) is str else value)
    need(size is None or param[5] is None or size >= param[5], "bad_argument")
    need(size is None or param[6] is None or size <= param[6], "bad_argument")


def conform(manifest, args):
    params = {param[1]: param for param in manifest[7]}
    whole = cbor.decode(manifest[19], cbor.DATA) if 19 in manifest else {}
    schemas = whole.get("inputSchema", {}).get("properties", {})
    found = {}
    for name in sorted(args, key=cbor.encode):
        value, param = args[name], params.get(name)
        need(param or manifest[8] == tables.CODES["Extra"]["taken"], "unknown_argument")
        if param and not (value is None and permits_null(schemas.get(name, False))):
            if value is None and param[3] == PRESENCE["optional"]:
                continue
            fits(param, value)
        found[name] = value
    for name, param in params.items():
        if name not in found:
            if param[4] is not None:
                found[name] = param[4]
            else:
                need(param[3] == PRESENCE["optional"], "missing_argument")
    return found


def resolve(manifest, released, args):
    """What a tool is given for `args`, where these results were released: {position: result}."""
    found = references(args, [])
    need(all(record in released for record, _ in found), "unknown_reference")
    parts = [pick(released[record], path) for record, path in found]
    need(sum(len(cbor.encode(part)) for part in parts) <= PARTS_MAX, "too_large")
    args = put(args, iter(parts))
    data = cbor.encode(args)
    need(len(data) <= PARTS_MAX, "too_large")
    try:
        cbor.decode(data, cbor.DATA)
    except Refused as error:
        raise Refused("too_deep") from error
    return conform(manifest, args)
