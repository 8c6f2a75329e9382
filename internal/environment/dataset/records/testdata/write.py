# Copyright 2026 The tinker-operator authors.
# SPDX-License-Identifier: Apache-2.0
"""Writes the Parquet files of the tests with pyarrow 26: python3 write.py FOLDER."""

import datetime
import decimal
import os
import sys

import pyarrow as pa
import pyarrow.parquet as pq

ROWS = [
    {"nums": [44, 19, 35], "target": 98, "q": "what?", "extra": {"a": 1, "b": [{"c": "x"}, {"c": None}]}, "w": 1.5,
     "ok": True, "when": datetime.datetime(2024, 1, 2, 3, 4, 5), "d": datetime.date(2024, 1, 2),
     "dec": decimal.Decimal("12.34"), "bin": b"\x00\xff", "none": None, "messages": [{"role": "user", "content": "hi"}],
     "f": 0.1},
    {"nums": [], "target": None, "q": "é", "extra": {"a": None, "b": []}, "w": -2.0, "ok": False, "when": None, "d": None,
     "dec": decimal.Decimal("-0.05"), "bin": b"", "none": None, "messages": [], "f": 2.5},
]


def types() -> pa.Table:
    table = pa.Table.from_pylist(ROWS)
    table = table.set_column(table.schema.get_field_index("none"), "none", pa.array([None, None], pa.string()))
    table = table.append_column("f32", pa.array([0.1, 2.5], pa.float32()))
    table = table.append_column("u64", pa.array([2**63 + 1, 1], pa.uint64()))
    table = table.append_column("i8", pa.array([-3, 4], pa.int8()))
    return table.append_column("large", pa.array(["l1", "l2"], pa.large_string()))


def rare_types() -> pa.Table:
    return pa.table({
        "m": pa.array([[("k", 1), ("l", 2)], []], pa.map_(pa.string(), pa.int64())),
        "mi": pa.array([[(3, "x")], None], pa.map_(pa.int32(), pa.string())),
        "nan": [float("nan"), 1.0],
        "ll": [[[1], [2, 3]], []],
        "dict": pa.array(["a", "b"]).dictionary_encode(),
        "t": pa.array([1000, None], pa.time64("us")),
        "tz": pa.array([1704164645123456789, 0], pa.timestamp("ns", tz="UTC")),
        "img": [{"bytes": b"\xff\xd8", "path": "x"}, None],
        "ts": pa.array([[1704164645123], [0]], pa.list_(pa.timestamp("ms"))),
        "f16": pa.array([1.5, 2.5], pa.float32()).cast(pa.float16()),
        "n": pa.array([None, None], pa.null()),
        "d256": pa.array([12, 34], pa.decimal128(30, 0)),
    })


if __name__ == "__main__":
    pq.write_table(types(), os.path.join(sys.argv[1], "types.parquet"), compression="zstd")
    pq.write_table(rare_types(), os.path.join(sys.argv[1], "types2.parquet"), compression="gzip")
