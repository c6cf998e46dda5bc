// SPDX-License-Identifier: Apache-2.0
#include "train/records/checkpoint/tensor_file.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "data/files/mistaken_file.h"
#include "data/files/npy_header.h"
#include "kernels/base/error.h"
#include "train/records/checkpoint/error.h"
#include "train/records/checkpoint/pt_records.h"
#include "train/records/checkpoint/safetensors.h"

namespace gradring::train {
namespace {

namespace fs = std::filesystem;

using data::kNpyMagic;
using data::kNpyVersionEnd;
constexpr const char* kNpyAdvice = "save it by numpy.save as an array of plain numbers";

[[noreturn]] void refuse_npy(const fs::path& path, const std::string& found) {
  throw CheckpointError(path, found, kNpyAdvice);
}

/// A type string of NumPy without its byte order: ">f4" is big-endian f32.
struct NpyType {
  TensorType type;
  bool is_big_endian;
};

NpyType type_of(const std::string& descr, const fs::path& path) {
  const bool is_big_endian = descr.starts_with('>');
  const std::string little = is_big_endian ? "<" + descr.substr(1) : descr;
  if (const auto type = find_type(&TensorTypeNames::npy, little)) return {*type, is_big_endian};
  if (descr.find('O') != descr.npos) refuse_npy(path, "holds Python objects, which only unpickling could read");
  refuse_npy(path, "holds elements of type " + in_quotes(descr));
}

std::vector<std::int64_t> column_major_strides(std::span<const std::int64_t> shape) {
  std::vector<std::int64_t> strides(shape.size(), 1);
  for (std::size_t axis = 1; axis < shape.size(); ++axis)
    strides[axis] = strides[axis - 1] * std::max<std::int64_t>(shape[axis - 1], 1);
  return strides;
}

using data::kStartBytes;  // enough for a pickle of one number

/// A bare pickle begins with its protocol. So may the length of a safetensors header, but not one below the limit.
bool is_pickle(std::string_view start) {
  if (start.size() < 8 || start[0] != '\x80' || start[1] < 2 || start[1] > 5) return false;
  return get_little_endian<std::uint64_t>(start, 0) > kLargestHeaderBytes;
}

/// Unless a safetensors header begins there.
void refuse_mistaken(const std::filesystem::path& path, std::string_view start) {
  if (start.empty()) throw CheckpointError(path, "is empty", "copy or download it again");
  if (start.substr(std::min(start.size(), sizeof(std::uint64_t))).starts_with('{')) return;
  if (const auto file = data::find_mistaken_file(start))
    throw CheckpointError(path, std::string(file->what), std::string(file->advice));
}

}  // namespace

TensorRecord read_npy(const InputFile& file, const fs::path& path) {
  if (file.size() < kNpyVersionEnd) refuse_npy(path, "is too short to be a .npy file");
  const std::string start = read_text(file, path, 0, kNpyVersionEnd);
  if (!start.starts_with(kNpyMagic)) refuse_npy(path, "does not begin with the magic of a .npy file");
  const int version = static_cast<unsigned char>(start[kNpyMagic.size()]);
  if (version < 1 || version > 3)
    refuse_npy(path, "has version " + std::to_string(version) + " of the format, expected 1 to 3");
  const std::size_t field_bytes = version == 1 ? 2 : 4;
  const std::string field = read_text(file, path, kNpyVersionEnd, field_bytes);
  const std::size_t header_bytes =
      version == 1 ? get_little_endian<std::uint16_t>(field, 0) : get_little_endian<std::uint32_t>(field, 0);
  if (header_bytes > data::kLargestNpyHeader)
    refuse_npy(path, "has a header of " + std::to_string(header_bytes) + " bytes, expected at most 64 KiB");
  const std::string text = read_text(file, path, kNpyVersionEnd + field_bytes, header_bytes);

  const auto header = data::parse_npy_header(text);
  if (!header) refuse_npy(path, "has an unknown header: " + in_quotes(text));
  const NpyType type = type_of(header->descr, path);
  TensorRecord record{{"", type.type, header->shape}, {}};
  const std::uint64_t data_bytes = file.size() - kNpyVersionEnd - field_bytes - header_bytes;
  const auto expected = byte_size(record.type, record.shape);
  if (expected != data_bytes)
    refuse_npy(path, "holds " + std::to_string(data_bytes) + " bytes of data, which is not " +
                         shape_text(record.shape) + " of " + header->descr);
  record.bytes = read_bytes(file, path, file.size() - data_bytes, data_bytes);
  if (type.is_big_endian) swap_byte_order(record);
  if (header->fortran_order && !record.bytes.empty()) {
    require_memory(path, data_bytes);
    const StridedView view{.shape = record.shape, .strides = column_major_strides(record.shape)};
    record.bytes = view.make_dense(record.bytes, names_of(record.type).bits / 8);
  }
  return record;
}

std::string npy_head(const TensorInfo& tensor) {
  const std::string_view descr = names_of(tensor.type).npy;
  check(!descr.empty(), "NumPy lacks the type " + std::string(names_of(tensor.type).safetensors));
  std::string shape = "(";
  for (std::int64_t extent : tensor.shape) shape += std::to_string(extent) + ", ";
  if (tensor.shape.size() == 1) shape.pop_back();  // (3,) but (3, 4)
  if (tensor.shape.size() > 1) shape.resize(shape.size() - 2);
  std::string header = "{'descr': '" + std::string(descr) + "', 'fortran_order': False, 'shape': " + shape + "), }";

  constexpr std::size_t kAlignment = 64, kPreamble = kNpyVersionEnd + 2;
  header.resize((kPreamble + header.size() + kAlignment) / kAlignment * kAlignment - kPreamble - 1, ' ');
  header += '\n';
  check(header.size() < 1u << 16, "the shape " + shape_text(tensor.shape) + " does not fit a .npy header");
  std::string head = std::string(kNpyMagic) + '\1' + '\0';
  put_little_endian(head, static_cast<std::uint16_t>(header.size()));
  return head + header;
}

void write_npy(FileSystem& files, const fs::path& path, const TensorRecord& tensor) {
  const std::string head = npy_head(tensor);
  check(byte_size(tensor.type, tensor.shape) == tensor.bytes.size(),
        "the bytes do not fit " + shape_text(tensor.shape) + " of " + std::string(names_of(tensor.type).npy));
  const auto file = files.create(path);
  write_all(*file, path, bytes_of(head));
  write_all(*file, path, tensor.bytes);
  file->sync();
  file->close();
}

std::vector<TensorRecord> read_tensor_file(FileSystem& files, const std::filesystem::path& path) {
  const auto file = open_to_read(files, path);
  const std::string start = read_text(*file, path, 0, std::min(file->size(), kStartBytes));
  if (start.starts_with("PK") || is_legacy_pt(start)) return read_pt(*file, path);
  if (is_pickle(start))
    throw CheckpointError(path, "is a Python pickle without PyTorch's format",
                          "load it in Python and save its tensors: torch.save(state_dict, \"new.pt\")");
  refuse_mistaken(path, start);
  if (!start.starts_with("\x93NUMPY")) return read_safetensors(files, path);
  TensorRecord record = read_npy(*file, path);
  record.name = path.stem().string();
  return {std::move(record)};
}

}  // namespace gradring::train
