"""Damage to files, drawn from a generator: to their bytes, and to what their kind holds (cells, members, headers)."""

from __future__ import annotations

import gzip
import io
import json
import pickle
import random
import struct
import tarfile
import warnings
import zipfile
from collections.abc import Callable
from typing import Any

Mutation = Callable[[bytes, random.Random], bytes]
_MOST = 4 << 20  # bytes of a mutated file

NUMBERS = (
    "0",
    "-1",
    "1e308",
    "-1e308",
    "1e400",
    "9" * 25,
    "9" * 400,
    "nan",
    "-inf",
    "Infinity",
    "0x1F",
    "1_000",
    "1,5",
)
WORDS = (
    *(
        "",
        " ",
        "None",
        "True",
        "false",
        "=1+1",
        "@x",
        "-",
        "é",
        "\U0001f600",
        "\x00",
        "a\nb",
        '"',
        "'",
        "\\",
        "\x1b[31m",
    ),
    *(
        "2020-01-01",
        "2020-02-30T25:61",
        "9999-12-31T23:59:59.999999999",
        "12:00",
        "1 day",
        "0000-00-00",
        "\ud7ff",
        "x" * 5000,
    ),
)
VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 2**31, 2**63, 2**64, 10**400, 1.5, -0.0, 1e308, float("nan"), float("inf")),
    *("", "x", "5", "\x00", "../../x", "é" * 100, [], {}, [[]], [None], {"": None}, [1, "a", None], {"a": {"b": []}}),
)


def mutate(name: str, content: bytes, rng: random.Random) -> bytes:
    """Damage the content of a file called `name` once."""
    own = next((mutations for ending, mutations in _KINDS.items() if name.lower().endswith(ending)), None)
    if own is not None and rng.random() < 0.75:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return rng.choice(own)(content, rng)[:_MOST]
        except Exception:  # it is damaged already, and no longer of its kind
            pass
    return rng.choice(_BYTES)(content, rng)[:_MOST]


# bytes


def _flip_bits(content: bytes, rng: random.Random) -> bytes:
    changed = bytearray(content or b"\0")
    for _ in range(rng.choice((1, 1, 2, 8, 64))):
        changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def _overwrite(content: bytes, rng: random.Random) -> bytes:
    begin, size = _stretch(content, rng)
    filling = rng.choice((b"\0", b"\xff", b"\x80", b"9", b"\n", b'"', b"PK\x03\x04", rng.randbytes(4)))
    return content[:begin] + (filling * size)[:size] + content[begin + size :]


def _truncate(content: bytes, rng: random.Random) -> bytes:
    return content[: rng.choice((0, 1, rng.randrange(len(content) + 1), max(0, len(content) - 1 - rng.randrange(64))))]


def _drop(content: bytes, rng: random.Random) -> bytes:
    begin, size = _stretch(content, rng)
    return content[:begin] + content[begin + size :]


def _repeat(content: bytes, rng: random.Random) -> bytes:
    begin, size = _stretch(content, rng)
    return content[:begin] + content[begin : begin + size] * rng.choice((2, 2, 10, 200)) + content[begin + size :]


def _insert(content: bytes, rng: random.Random) -> bytes:
    begin, _ = _stretch(content, rng)
    added = (
        b"\0",
        b"\0" * 1000,
        b"\r",
        b"\n\n",
        b"\xff\xfe",
        b"\xed\xa0\x80",
        b"\x1a",
        rng.randbytes(rng.randrange(1, 100)),
    )
    return content[:begin] + rng.choice((*added, *(word.encode() for word in NUMBERS))) + content[begin:]


def _append(content: bytes, rng: random.Random) -> bytes:
    return content + rng.choice((content, b"\0" * 4096, rng.randbytes(50), b"\n"))


def _recode(content: bytes, rng: random.Random) -> bytes:
    encoding = rng.choice(("utf-16", "utf-16-be", "utf-32", "utf-7", "utf-8-sig", "cp037"))
    return content.decode("latin-1").encode(encoding, "replace")


def _replace(content: bytes, rng: random.Random) -> bytes:
    """Give the file the content of another kind."""
    kinds = (
        b"",
        b"\x89PNG\r\n\x1a\n",
        b"%PDF-1.7",
        b"<html>",
        b"PK\x05\x06" + b"\0" * 18,
        b"\x1f\x8b",
        b"PAR1PAR1",
        b"null",
    )
    return rng.choice(kinds)


_BYTES: tuple[Mutation, ...] = (
    *(_flip_bits, _flip_bits, _flip_bits, _overwrite, _overwrite, _truncate, _drop, _repeat, _insert, _insert, _append),
    *(_recode, _replace),
)


def _stretch(content: bytes, rng: random.Random) -> tuple[int, int]:
    """Return where a stretch begins, and its length: mostly short, and as often at an end as anywhere else."""
    size = min(len(content), rng.choice((1, 4, 16, 64, max(1, len(content) // 2))))
    last = len(content) - size
    return rng.choice((0, last, rng.randint(0, last), rng.randint(0, last))), size


# csv


def _cells(content: bytes, rng: random.Random) -> bytes:
    """Replace some cells, or a whole column."""
    rows = _rows(content)
    for _ in range(rng.choice((1, 1, 5, 50))):
        row = rng.choice(rows[1:] or rows)
        row[rng.randrange(len(row))] = rng.choice(NUMBERS + WORDS)
    return _table(rows)


def _column(content: bytes, rng: random.Random) -> bytes:
    rows = _rows(content)
    column, words = rng.randrange(len(rows[0])), rng.choices(NUMBERS + WORDS, k=rng.choice((1, 2, 5)))
    for row in rows[rng.choice((0, 1, 1, 1)) :]:
        if column < len(row):
            row[column] = rng.choice(words)
    return _table(rows)


def _header(content: bytes, rng: random.Random) -> bytes:
    rows = _rows(content)
    names = rows[0]
    names[rng.randrange(len(names))] = rng.choice((*names, *WORDS, *NUMBERS))
    return _table(rows)


def _wide(content: bytes, rng: random.Random) -> bytes:
    """Give every row many more cells, or only some rows."""
    rows, more = _rows(content), rng.choice((1, 10, 20_000))
    names = [f"c{i}" for i in range(more)] if rng.random() < 0.7 else ["c"] * more
    kept = rows[: 1 + (200 if more < 100 else 8)]
    return _table(
        [row + (names if i == 0 else ["1"] * more) for i, row in enumerate(kept) if i == 0 or rng.random() < 0.9]
    )


def _ragged(content: bytes, rng: random.Random) -> bytes:
    rows = _rows(content)
    row = rng.choice(rows)
    if rng.random() < 0.5:
        row.pop()
    else:
        row += rng.choices(NUMBERS + WORDS, k=rng.choice((1, 3)))
    return _table(rows)


def _layout(content: bytes, rng: random.Random) -> bytes:
    """Change separators, line ends or order; or keep the header only."""
    rows = _rows(content)
    text = _table(rows)
    shuffled = rows[1:]
    rng.shuffle(shuffled)
    return rng.choice(
        (
            *(text.replace(b",", sign) for sign in (b";", b"\t", b"|", b" ", b", ")),
            *(text.replace(b"\n", sign) for sign in (b"\r", b"\r\n", b"\n\n")),
            *(_table(rows[:1]), _table(rows[1:]), _table(rows[:2]), _table([rows[0], *shuffled])),
        )
    )


def _rows(content: bytes) -> list[list[str]]:
    return [line.split(",") for line in content.decode("utf-8").splitlines() if line]


def _table(rows: list[list[str]]) -> bytes:
    return "".join(f"{','.join(row)}\n" for row in rows).encode("utf-8", "surrogatepass")


_CSV: tuple[Mutation, ...] = (_cells, _cells, _column, _column, _header, _header, _wide, _ragged, _layout)


# json


def _node(content: bytes, rng: random.Random) -> bytes:
    """Replace, remove, rename or double a node."""
    found = json.loads(content)
    places = list(_places(found))
    if not places:
        return json.dumps(rng.choice(VALUES)).encode()
    parent, key = rng.choice(places)
    action = rng.choice(("replace", "replace", "replace", "remove", "rename", "double"))
    if action == "remove":
        del parent[key]
    elif action == "rename" and isinstance(parent, dict):
        parent[rng.choice(("", "x", "Format", "\x00"))] = parent.pop(key)
    elif action == "double" and isinstance(parent, list):
        parent.append(parent[key])
    else:
        parent[key] = rng.choice(VALUES)
    return json.dumps(found).encode()


def _places(value: Any) -> list[tuple[Any, Any]]:
    """Return every place in a JSON value, as its parent and key."""
    keys = list(value) if isinstance(value, dict) else list(range(len(value))) if isinstance(value, list) else []
    return [(value, key) for key in keys] + [place for key in keys for place in _places(value[key])]


def _deep(content: bytes, rng: random.Random) -> bytes:
    return rng.choice((b"[" * 100_000, b"[" * 500 + b"]" * 500, b'{"a":' * 5000 + b"1" + b"}" * 5000, b"1" * 5000))


_JSON: tuple[Mutation, ...] = (_node, _node, _node, _node, _node, _deep)


# zip (npz, pt)


def _member(content: bytes, rng: random.Random) -> bytes:
    """Damage a member, and pack it with the right checksum."""
    members = _members(content)
    chosen = rng.choice(members)
    chosen[1] = mutate(chosen[0], chosen[1], rng)
    return _zip(members, _compression(content))


def _members_list(content: bytes, rng: random.Random) -> bytes:
    """Remove, rename, double or exchange members."""
    members = _members(content)
    action, chosen, other = rng.randrange(5), rng.choice(members), rng.choice(members)
    if action == 0:
        members.remove(chosen)
    elif action == 1:
        chosen[0] = rng.choice((other[0], "", "../x", "/x", "x\\y", "x" * 300, "C:x", "x/", chosen[0].upper()))
    elif action == 2:
        members.append([chosen[0], other[1]])
    elif action == 3:
        chosen[1], other[1] = other[1], chosen[1]
    else:
        members.append(["added.npy", b"\0" * rng.choice((0, 100, 1 << 20))])
    return _zip(members, _compression(content))


def _other_compression(content: bytes, rng: random.Random) -> bytes:
    kind = rng.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA))
    packed = _zip(_members(content), kind)
    return packed if rng.random() < 0.3 else _inside(packed, rng)


def _inside(content: bytes, rng: random.Random) -> bytes:
    """Flip bits of the first member's packed bytes."""
    begin, size = 30, min(len(content) - 60, 2000)
    return content[:begin] + _flip_bits(content[begin : begin + size], rng) + content[begin + size :]


def _zip_header(content: bytes, rng: random.Random) -> bytes:
    """Change a field of an entry in the directory at the end."""
    at = content.rindex(b"PK\x01\x02") + rng.choice((6, 8, 10, 16, 20, 24, 28, 30, 32, 42))
    return (
        content[:at]
        + rng.choice((b"\0\0\0\0", b"\xff\xff\xff\xff", b"\xff\xff\xff\x7f", b"\x0e\0\0\0"))
        + content[at + 4 :]
    )


def _members(content: bytes) -> list[list[Any]]:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return [[entry.filename, archive.read(entry)] for entry in archive.infolist()]


def _compression(content: bytes) -> int:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return archive.infolist()[0].compress_type


def _zip(members: list[list[Any]], compression: int) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", compression) as archive:
        for name, content in members:
            archive.writestr(zipfile.ZipInfo(name or "empty"), content, compression)
    return packed.getvalue()


_ZIP: tuple[Mutation, ...] = (
    _member,
    _member,
    _member,
    _member,
    _members_list,
    _other_compression,
    _inside,
    _zip_header,
)


# npy


def _npy_header(content: bytes, rng: random.Random) -> bytes:
    """Write another header before the same bytes."""
    shapes = (
        "()",
        "(0,)",
        "(-1,)",
        "(5,)",
        "(2**62,)",
        "(1<<40,)",
        "(99999999999999999999,)",
        "(1e9,)",
        "('a',)",
        "None",
    )
    shapes += ("(100000, 100000, 100000)", "(" + "1," * 70 + ")", "(True,)", "(4611686018427387904, 4)", "(300000000,)")
    types = (
        "'<f8'",
        "'<i4'",
        "'|O'",
        "'<U9'",
        "'<U999999999'",
        "'|V8'",
        "'|S0'",
        "'<m8[ns]'",
        "'<M8'",
        "'<c16'",
        "'>f2'",
    )
    types += (
        "[('a', '<f4'), ('b', '<i4')]",
        "'nonsense'",
        "None",
        "('<f8', (2, 2))",
        "'" + "x" * 300 + "'",
        "[]",
        "{}",
    )
    text = f"{{'descr': {rng.choice(types)}, 'fortran_order': {rng.choice(('False', 'True', '0', 'None'))}, "
    text += f"'shape': {rng.choice(shapes)}, }}"
    start, _, body = _npy_parts(content)
    if rng.random() < 0.4:  # only one field
        old = content[10 : 10 + struct.unpack_from("<H", content, 8)[0]].decode("latin-1")
        field, choices = rng.choice((("'descr': ", types), ("'shape': ", shapes)))
        at = old.index(field) + len(field)
        stop = old.index(", 'fortran" if "descr" in field else ", }", at)
        text = old[:at] + rng.choice(choices) + old[stop:].rstrip()
    if rng.random() < 0.3:
        text = rng.choice(
            (
                text[: rng.randrange(len(text))],
                text + "(",
                "{" * 300,
                "'''",
                text.replace("'", '"', 1),
                "1" * 6000,
                "\0",
            )
        )
    header = text.encode("latin-1").ljust(54) + b"\n"
    return start[:8] + struct.pack("<H", len(header) & 0xFFFF) + header + body


def _npy_version(content: bytes, rng: random.Random) -> bytes:
    return content[:6] + rng.choice((b"\x02\0", b"\x03\0", b"\x09\0", b"\0\0")) + content[8:]


def _npy_array(content: bytes, rng: random.Random) -> bytes:
    """Store the array in another type or shape."""
    import numpy as np

    array = np.load(io.BytesIO(content), allow_pickle=False)
    made: list[Callable[[], Any]] = [
        lambda: array.astype(object),
        lambda: array.astype(str),
        lambda: array.astype(bytes),
        lambda: array.astype(complex),
        lambda: array.astype(bool),
        lambda: array.astype(np.float64) * 1e300,
        lambda: array.astype(np.int64).astype("M8[s]"),
        lambda: array.astype(np.uint64) - np.uint64(1),
        lambda: np.full(array.shape, np.nan),
        lambda: np.where(np.arange(array.size).reshape(array.shape) % 7, array, array.flat[0]),
        lambda: array[:0],
        lambda: array[0],
        lambda: array[None],
        lambda: array[::-1],
        lambda: array[: len(array) // 2],
        lambda: np.asfortranarray(array),
        lambda: array.astype(array.dtype.newbyteorder()),
        lambda: np.array([tuple(range(2))] * len(array), [("a", "f4"), ("b", "i4")]),
        lambda: np.array({"a": 1}, object),
        lambda: np.ma.masked_array(array, array == array.flat[0]).filled(),
    ]
    stream = io.BytesIO()
    np.save(stream, rng.choice(made)())
    return stream.getvalue()


def _npy_body(content: bytes, rng: random.Random) -> bytes:
    start, header, body = _npy_parts(content)
    return start + header + rng.choice(_BYTES)(body, rng)


def _npy_parts(content: bytes) -> tuple[bytes, bytes, bytes]:
    end = 10 + struct.unpack_from("<H", content, 8)[0]
    return content[:10], content[10:end], content[end:]


_NPY: tuple[Mutation, ...] = (_npy_header, _npy_header, _npy_version, _npy_array, _npy_array, _npy_array, _npy_body)


# gzip, tar, parquet, pickle


def _packed(content: bytes, rng: random.Random) -> bytes:
    """Damage what was packed, and pack it again."""
    plain = gzip.decompress(content)
    kind = "x.tar" if plain[257:262] == b"ustar" else "x.csv"
    return gzip.compress(mutate(kind, plain, rng), mtime=0)


def _tar_members(content: bytes, rng: random.Random) -> bytes:
    """Rename, retype, damage or resize an entry."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=io.BytesIO(content)) as archive, tarfile.open(fileobj=packed, mode="w") as copy:
        entries = archive.getmembers()
        chosen = rng.choice(entries)
        for entry in entries:
            inner = archive.extractfile(entry)
            body = inner.read() if inner else b""
            if entry is chosen:
                action = rng.randrange(4)
                if action == 0:
                    entry.name = rng.choice(
                        ("../x", "/etc/x", "", "a/../../x", "x" * 400, "C:\\x", "a\\..\\..\\x", "\0")
                    )
                elif action == 1:
                    entry.type = rng.choice((tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE, b"Z"))
                    entry.linkname = "../../x"
                elif action == 2:
                    body = mutate(entry.name, body, rng)
                    entry.size = len(body)
                else:
                    entry.mode, entry.mtime = rng.choice((0, 0o7777)), rng.choice((0, 2**33 - 1))
            copy.addfile(entry, io.BytesIO(body))
    return packed.getvalue()


def _tar_header(content: bytes, rng: random.Random) -> bytes:
    """Change a field of the first header, with the right checksum."""
    at, size = rng.choice(((0, 100), (100, 8), (124, 12), (136, 12), (156, 1), (257, 8), (345, 155)))
    filling = rng.choice(
        (b"\0" * size, b"7" * size, b"\xff" * size, b"\x80" + b"\xff" * (size - 1), rng.randbytes(size))
    )
    header = bytearray(content[:at] + filling + content[at + size : 512])
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % (sum(header) & 0o777777)
    return bytes(header) + content[512:]


def _parquet_metadata(content: bytes, rng: random.Random) -> bytes:
    """Damage what pandas wrote about the columns."""
    import pyarrow.parquet as pq

    table = pq.read_table(io.BytesIO(content))
    metadata = dict(table.schema.metadata or {})
    old = metadata.get(b"pandas", b"{}")
    metadata[b"pandas"] = rng.choice((_node, _node, _node, _node, rng.choice(_BYTES)))(old, rng)
    return _parquet_bytes(table.replace_schema_metadata(metadata))


def _parquet_column(content: bytes, rng: random.Random) -> bytes:
    """Give a column another type, name or content."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pq.read_table(io.BytesIO(content))
    place, n = rng.randrange(table.num_columns), table.num_rows
    made: list[Callable[[], Any]] = [
        lambda: pa.array([i % 2 == 0 for i in range(n)]),
        lambda: pa.nulls(n),
        lambda: pa.array([[1.0, 2.0]] * n),
        lambda: pa.array([{"a": 1}] * n),
        lambda: pa.array(["a", "b"] * (n // 2) + ["c"] * (n % 2)).dictionary_encode(),
        lambda: pa.array([b"\xff\x00"] * n),
        lambda: pa.array(range(n)).cast(pa.timestamp("ns", "Europe/Berlin")),
        lambda: pa.array(range(n)).cast(pa.duration("s")),
        lambda: pa.array(range(n), pa.int64()).cast(pa.decimal128(30, 2)),
        lambda: pa.array([i % 86400 for i in range(n)], pa.int32()).cast(pa.time32("s")),
        lambda: pa.array(range(n), pa.int32()).cast(pa.date32()),
        lambda: pa.array([2**63 + i for i in range(n)], pa.uint64()),
        lambda: pa.array([None if i % 3 else i for i in range(n)], pa.int64()),
        lambda: pa.array([1e300] * n),
        lambda: pa.array([float("nan")] * n),
        lambda: table.column(place),
    ]
    name = rng.choice(
        (table.column_names[place], table.column_names[place], rng.choice(table.column_names), "", "\0", "x" * 999)
    )
    found = table.set_column(place, name, rng.choice(made)())
    return _parquet_bytes(found if rng.random() < 0.5 else found.replace_schema_metadata(None))


def _parquet_shape(content: bytes, rng: random.Random) -> bytes:
    """Keep no rows, no columns, or make very many columns."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pq.read_table(io.BytesIO(content))
    wide = {f"c{i}": pa.array([1.0, 2.0, 3.0]) for i in range(1000)}
    return _parquet_bytes(rng.choice((table.slice(0, 0), table.slice(0, 1), table.select([]), pa.table(wide))))


def _parquet_bytes(table: Any) -> bytes:
    import pyarrow.parquet as pq

    stream = io.BytesIO()
    pq.write_table(table, stream)
    return stream.getvalue()


def _other_object(content: bytes, rng: random.Random) -> bytes:
    """Pickle something else than the array."""
    import numpy as np

    loop: list[Any] = []
    loop.append(loop)
    values = (
        *VALUES,
        loop,
        np.float32(1),
        np.array("x"),
        np.array([{}], object),
        np.array([1 + 1j]),
        np.zeros((3, 0, 2)),
    )
    values += (
        np.ma.masked_array([1, 2]),
        np.array([(1, 2.0)], "i4,f4"),
        np.zeros(3, "M8[s]"),
        io.BytesIO,
        Exception("x"),
    )
    return pickle.dumps(rng.choice(values), protocol=rng.choice((0, 2, 4, 5)))


def _opcodes(content: bytes, rng: random.Random) -> bytes:
    """Change bytes near the beginning, where a pickle of an array has its instructions."""
    head = bytearray(content[:200])
    for _ in range(rng.choice((1, 1, 3))):
        head[rng.randrange(len(head))] = rng.choice(
            b"().0122345BCIKLMNQRSTUVX]abcdegijlopqrstu}\x80\x81\x8c\x93\x94\x95\xff\0"
        )
    return bytes(head) + content[200:]


_KINDS: dict[str, tuple[Mutation, ...]] = {
    **dict.fromkeys((".csv", ".txt"), _CSV),
    ".json": _JSON,
    **dict.fromkeys((".npz", ".pt", ".zip"), _ZIP),
    ".npy": _NPY,
    ".tar": (_tar_members, _tar_members, _tar_header),
    **dict.fromkeys((".gz", ".tgz"), (_packed,)),
    **dict.fromkeys((".parquet", ".pq"), (_parquet_metadata, _parquet_metadata, _parquet_column, _parquet_shape)),
    **dict.fromkeys((".pkl", ".pickle"), (_other_object, _opcodes, _opcodes)),
}
