// SPDX-License-Identifier: Apache-2.0
#include "train/checkpoint/npy.h"

#include "kernels/runtime/error.h"
#include "train/checkpoint/error.h"
#include "train/checkpoint/file_io.h"
#include "train/checkpoint/npy_header.h"

namespace gradring::train {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr std::size_t kVersionEnd = 8;
constexpr std::size_t kLargestHeader = 64 * 1024;
constexpr const char* kSaveAgain = "save it by numpy.save as a C-ordered, little-endian array of plain numbers";

[[noreturn]] void refuse(const fs::path& path, const std::string& found) {
  throw CheckpointError(path, found, kSaveAgain);
}

/// N: two bytes in version 1, four from 2 on.
std::size_t read_header_size(const InputFile& file, const fs::path& path, std::size_t field_bytes) {
  const std::string field = read_text(file, path, kVersionEnd, field_bytes);
  std::size_t size = 0;
  for (std::size_t i = field_bytes; i-- > 0;) size = size << 8 | static_cast<unsigned char>(field[i]);
  if (size > kLargestHeader) refuse(path, "has a header of " + std::to_string(size) + " bytes");
  return size;
}

TensorType type_of(const std::string& descr, const fs::path& path) {
  if (const auto type = find_type(&TensorTypeNames::npy, descr)) return *type;
  if (descr.find('O') != descr.npos) refuse(path, "holds Python objects, which only unpickling could read");
  refuse(path, (descr.starts_with('>') ? "holds big-endian numbers " : "holds elements of type ") + in_quotes(descr));
}

}  // namespace

TensorRecord read_npy(const InputFile& file, const fs::path& path) {
  if (file.size() < kVersionEnd) refuse(path, "is too short to be a .npy file");
  const std::string start = read_text(file, path, 0, kVersionEnd);
  if (!start.starts_with(kMagic)) refuse(path, "does not start as a .npy file");
  const int version = static_cast<unsigned char>(start[kMagic.size()]);
  if (version < 1 || version > 3) refuse(path, "is of version " + std::to_string(version) + " of the format");
  const std::size_t field_bytes = version == 1 ? 2 : 4;
  const std::size_t header_bytes = read_header_size(file, path, field_bytes);
  const std::string text = read_text(file, path, kVersionEnd + field_bytes, header_bytes);

  const auto header = parse_npy_header(text);
  if (!header) refuse(path, "has a header of another form: " + in_quotes(text));
  if (header->fortran_order) refuse(path, "is in Fortran order");
  TensorRecord record{{"", type_of(header->descr, path), header->shape}, {}};
  const std::uint64_t data_bytes = file.size() - kVersionEnd - field_bytes - header_bytes;
  const auto expected = byte_size(record.type, record.shape);
  if (expected != data_bytes)
    refuse(path, "says " + shape_text(record.shape) + " of " + header->descr + " and holds " +
                     std::to_string(data_bytes) + " bytes of data");
  record.bytes.resize(data_bytes);
  read_exactly(file, path, file.size() - data_bytes, record.bytes);
  return record;
}

void write_npy(FileSystem& files, const fs::path& path, const TensorRecord& tensor) {
  const std::string_view descr = names_of(tensor.type).npy;
  check(!descr.empty(), "NumPy has no type " + std::string(names_of(tensor.type).safetensors));
  check(byte_size(tensor.type, tensor.shape) == tensor.bytes.size(),
        "the bytes are not " + shape_text(tensor.shape) + " of " + std::string(descr));
  std::string shape = "(";
  for (std::int64_t extent : tensor.shape) shape += std::to_string(extent) + ", ";
  if (tensor.shape.size() == 1) shape.pop_back();  // (3,) but (3, 4)
  if (tensor.shape.size() > 1) shape.resize(shape.size() - 2);
  std::string header = "{'descr': '" + std::string(descr) + "', 'fortran_order': False, 'shape': " + shape + "), }";

  constexpr std::size_t kAlignment = 64, kPreamble = kVersionEnd + 2;
  header.resize((kPreamble + header.size() + kAlignment) / kAlignment * kAlignment - kPreamble - 1, ' ');
  header += '\n';
  check(header.size() < 1u << 16, "the shape " + shape_text(tensor.shape) + " does not fit a .npy header");
  std::string head = std::string(kMagic) + '\1' + '\0';
  head += static_cast<char>(header.size() & 0xff);
  head += static_cast<char>(header.size() >> 8);

  const auto file = files.create(path);
  write_all(*file, path, bytes_of(head + header));
  write_all(*file, path, tensor.bytes);
  file->sync();
  file->close();
}

}  // namespace gradring::train
