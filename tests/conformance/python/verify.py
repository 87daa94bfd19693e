"""Verifies a log: verify.py EXPORT [--trust FILE] [--require-anchor].

Verdicts and exit codes are those of docs/spec/verification.md. What can't be read is 4, a bad trust file 1.
"""

import pathlib
import sys

import cbor
import crypto
import fold
import record
from cbor import Refused
from tables import role_set, shape

EXIT = {"sound": 0, "tampered": 10, "incomplete": 11, "notanchored": 12, "newer": 13}


class Report:
    def __init__(self):
        self.faults, self.newer, self.records, self.verdict, self.open, self.home = [], None, 0, None, [], None


def link(data):
    """Position and leaf before, which stand alike in every version."""
    item = cbor.decode(data)
    record.need(isinstance(item, dict) and record.is_uint(item.get(0)) and record.is_uint(item.get(1)), "a link")
    record.typed("bstr of 32", item.get(2))
    return item[1], item[2]


def verify(records, objects, trust=None):
    """Verifies records with the objects beside them, by their names."""
    report, state, prev, seq = Report(), None, bytes(32), 0
    broken = lambda fault: report.faults.append((seq, fault))
    for seq, data in enumerate(records):
        if len(data) > 65535:
            broken("TooLarge")
            break
        read = None
        try:
            read = record.Record(data)
            place = (read.seq, read.prev)
        except record.Newer as newer:
            read, place = newer, link(data)
        except Refused as refused:
            try:
                place = link(data)
            except Refused:
                place = None
            too_old = str(refused).startswith("a version from before")
            if place is None or report.newer is None and not too_old:
                broken("Undecodable")
                break
        if place != (seq, prev):
            broken("Gap" if place[0] != seq else "Unchained")
            break
        prev = crypto.leaf(data)
        report.home = report.home or prev
        if report.newer is not None:
            continue
        if read is None:
            broken("UnknownForm")
            break
        if isinstance(read, record.Newer):
            if state is None and trust and trust[2] != prev:
                broken("Foreign")
                break
            report.newer = seq
            continue
        if state is None:
            if read.what != "genesis" or read.boot != 0 or read.clock != 0:
                broken("NotGenesis")
                break
            if trust and (trust[2], trust[3]) != (prev, read.roles):
                broken("Foreign")
                break
            state = fold.Fold(read, prev, objects)
            state.faults = report.faults
        else:
            state.enter(read)
        report.records += 1
    if not records:
        broken("Empty")
    report.open = sorted(state.open) if state else []
    ended = state is not None and state.phase == "shut" and not report.open
    report.verdict = (
        "tampered" if report.faults else "newer" if report.newer is not None else "sound" if ended else "incomplete"
    )
    return report


def trust_of(data):
    """A trust file's values."""
    value = cbor.decode(data)
    shape("Trust", value)
    record.need(value[1] == 2, "version 2")
    for one in value[3]:
        role_set(one)
    return value


def export(folder):
    """Records and objects of an export."""
    decoder = cbor.Decoder((folder / "records.cborseq").read_bytes(), cbor.CONTROL)
    records = []
    while decoder.at < len(decoder.data):
        start = decoder.at
        try:
            decoder.item()
        except Refused:
            decoder.at = len(decoder.data)
        records.append(decoder.data[start : decoder.at])
    return records, {bytes.fromhex(path.name): path.read_bytes() for path in (folder / "objects").iterdir()}


def words(report, trust):
    """The first line, as `syscap verify` prints it."""
    if report.faults:
        seq, fault = report.faults[0]
        if fault == "Foreign" and report.home != trust[2]:
            return f"tampered: the trust file is of home {trust[2].hex()}, and this log of home {report.home.hex()}"
        return f"tampered: record {seq} is the first that does not hold ({fault})"
    verdict = {"notanchored": "not anchored"}.get(report.verdict, report.verdict)
    anchored = "anchored to the trust file" if trust else "self-anchored: not shown is that nobody replaced the whole log"
    return f"{verdict}, {anchored}"


def main(arguments):
    needs_anchor = "--require-anchor" in arguments
    plain = [one for one in arguments if one != "--require-anchor"]
    if len(plain) not in (1, 3) or len(plain) == 3 and plain[1] != "--trust":
        print("usage: verify.py EXPORT [--trust FILE] [--require-anchor]", file=sys.stderr)
        return 2
    try:
        trust = trust_of(pathlib.Path(plain[2]).read_bytes()) if len(plain) == 3 else None
    except (OSError, Refused) as error:
        print(f"verify.py: {plain[2]}: {error}", file=sys.stderr)
        return 1
    try:
        report = verify(*export(pathlib.Path(plain[0])), trust)
    except (OSError, ValueError) as error:
        print(f"verify.py: {plain[0]}: {error}", file=sys.stderr)
        return 4
    if needs_anchor and trust is None and report.verdict in ("sound", "incomplete"):
        report.verdict = "notanchored"
    print(words(report, trust))
    print(f"records  {report.records}")
    for seq, fault in report.faults[1:]:
        print(f"record {seq}: {fault}")
    if report.newer is not None:
        print(f"record {report.newer} is of a later version")
    for seq in report.open:
        print(f"record {seq}: an intent without an outcome")
    return EXIT[report.verdict]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
