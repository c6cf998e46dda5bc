// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

#include "train/checkpoint/file_system.h"
#include "train/checkpoint/tensor_record.h"

namespace gradring::train {

/// Reads NumPy's .npy, versions 1 to 3: one array in C order, little-endian, of plain numbers. The record has no name.
///
///   | \x93NUMPY | major, minor | 2 or 4 bytes: N | N bytes: {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), } | data |
///
/// Errors    CheckpointError, naming the file, what was found and what to do: another magic or version, a header above
///           64 KiB or of any other form, Fortran order, big-endian numbers, Python objects, a size that the shape does not
///           have. Nothing of the file is ever executed.
/// Cost      takes memory for the data only after the file's size was compared with the shape.
/// Source    NumPy's format description (numpy.lib.format, NEP 1).
/// Example   tests/train/checkpoint/npy_test.cpp
TensorRecord read_npy(const InputFile& file, const std::filesystem::path& path);

/// Writes a new file of version 1.0 as numpy.save does, on the disk when this returns.
///
/// Errors    InvalidArgument if NumPy has no such type, or the bytes do not fit the shape; FileError, and the file may be
///           there in part.
void write_npy(FileSystem& files, const std::filesystem::path& path, const TensorRecord& tensor);

}  // namespace gradring::train
