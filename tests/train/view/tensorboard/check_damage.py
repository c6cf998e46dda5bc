# SPDX-License-Identifier: Apache-2.0
"""That TensorBoard's reader notices a flipped bit in each part of a record: check_damage.py RUN SCRATCH.

Prints each part with the reader's message. Exit codes: 0; 1 a flipped bit was not noticed; 77 no tensorboard."""
import pathlib
import struct
import sys

try:
    from tensorboard.compat.tensorflow_stub import errors
    from tensorboard.compat.tensorflow_stub.pywrap_tensorflow import PyRecordReader_New
except ImportError:
    print(f"{sys.executable} does not import tensorboard")
    sys.exit(77)

scratch = pathlib.Path(sys.argv[2])


def records_of(data):
    """The number of records up to the end of the file or a damaged one, and the reader's message."""
    scratch.write_bytes(data)
    reader, count = PyRecordReader_New(str(scratch)), 0
    while True:
        try:
            reader.GetNext()
        except errors.OutOfRangeError:
            return count, ""
        except errors.DataLossError as error:
            return count, error.message
        count += 1


whole = next(pathlib.Path(sys.argv[1], "tensorboard").iterdir()).read_bytes()
records, message = records_of(whole)
assert records > 10 and not message, (records, message)
first = 16 + struct.unpack("<Q", whole[:8])[0]  # bytes of the first record
for part, at in {"length": 0, "its sum": 8, "data": 20, "sum of the data": -1}.items():
    damaged = bytearray(whole)
    length = struct.unpack("<Q", whole[first:first + 8])[0]
    damaged[first + (at if at >= 0 else 16 + length + at)] ^= 1
    count, message = records_of(bytes(damaged))
    assert count == 1 and message, (part, count, message)
    print(f"{part}: {message.split()[-4:]}")
count, message = records_of(whole[:-3])  # as after SIGKILL
assert count == records - 1 and "truncated" in message, (count, message)
