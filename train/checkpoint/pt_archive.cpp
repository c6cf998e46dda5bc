// SPDX-License-Identifier: Apache-2.0
#include "train/checkpoint/pt_archive.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "kernels/runtime/error.h"
#include "train/checkpoint/error.h"

namespace gradring::train {
namespace {

namespace fs = std::filesystem;
using Kind = PickleValue::Kind;

constexpr std::uint64_t kMostTimesTheFile = 4;
constexpr std::size_t kMostExtents = 64;  // PyTorch's own limit

/// Adds b * c to a; returns false if the sum exceeds `most`.
bool add_product(std::uint64_t& a, std::uint64_t b, std::uint64_t c, std::uint64_t most) {
  std::uint64_t product = 0;
  return !__builtin_mul_overflow(b, c, &product) && !__builtin_add_overflow(a, product, &a) && a <= most;
}

/// A tensor in a PyTorch storage: element (i, j, ...) is at offset + i * strides[0] + j * strides[1] + ...
struct StridedView {
  std::int64_t offset = 0;
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> strides;

  /// Whether it is well-formed (one stride per extent, no negative numbers), lies within the storage, and has no more
  /// elements than the storage: views that repeat elements could have any size.
  bool lies_in(std::uint64_t storage_elements) const {
    const auto negative = [](std::int64_t value) { return value < 0; };
    if (strides.size() != shape.size() || offset < 0 || std::ranges::any_of(shape, negative) ||
        std::ranges::any_of(strides, negative))
      return false;
    if (std::ranges::count(shape, 0) > 0) return true;
    auto last = static_cast<std::uint64_t>(offset);
    std::uint64_t elements = 1;
    if (last >= storage_elements) return false;
    for (std::size_t axis = 0; axis < shape.size(); ++axis) {
      const auto extent = static_cast<std::uint64_t>(shape[axis]);
      if (!add_product(last, extent - 1, static_cast<std::uint64_t>(strides[axis]), storage_elements - 1)) return false;
      if (!add_product(elements, elements, extent - 1, storage_elements)) return false;
    }
    return true;
  }

  /// The elements, row-major. The view lies in `storage`.
  std::vector<std::byte> make_dense(std::span<const std::byte> storage, std::size_t element_bytes) const {
    std::size_t elements = 1;
    for (std::int64_t extent : shape) elements *= static_cast<std::size_t>(extent);
    std::vector<std::byte> dense(elements * element_bytes);
    if (elements == 0) return dense;
    if (strides == dense_strides(shape)) {
      std::memcpy(dense.data(), storage.data() + static_cast<std::size_t>(offset) * element_bytes, dense.size());
      return dense;
    }
    std::vector<std::int64_t> index(shape.size(), 0);
    auto at = static_cast<std::uint64_t>(offset);  // modulo 2^64: the stride of an extent of 1 can be anything
    for (std::size_t i = 0; i < elements; ++i) {
      std::memcpy(dense.data() + i * element_bytes, storage.data() + at * element_bytes, element_bytes);
      for (std::size_t axis = index.size(); axis-- > 0;) {  // increments the index
        const auto stride = static_cast<std::uint64_t>(strides[axis]);
        at += stride;
        if (++index[axis] < shape[axis]) break;
        at -= stride * static_cast<std::uint64_t>(index[axis]);
        index[axis] = 0;
      }
    }
    return dense;
  }
};

std::string text_in(const std::vector<std::byte>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

PtArchive::PtArchive(const InputFile& file, const fs::path& path, std::string_view advice)
    : path_(path), advice_(advice), archive_(file, path), bytes_left_(file.size() * kMostTimesTheFile) {
  find_prefix();
  pickle_ = read_pickle(text_in(archive_.read(*archive_.find(prefix_ + std::string(pt::kPickle)))), path_);
  if (const ZipEntry* order = archive_.find(prefix_ + "byteorder"); order && text_in(archive_.read(*order)) != "little")
    refuse("was saved on a big-endian machine");
}

void PtArchive::refuse(const std::string& found) const { throw CheckpointError(path_, found, advice_); }

/// All records are in one folder, which torch.save names after the file.
void PtArchive::find_prefix() {
  for (const ZipEntry& entry : archive_.entries()) {
    const auto slash = entry.name.find('/');
    if (slash == entry.name.npos || entry.name.substr(slash + 1) != pt::kPickle) continue;
    prefix_ = entry.name.substr(0, slash + 1);
    return;
  }
  refuse("is a zip archive without torch.save's data.pkl");
}

const PickleValue* PtArchive::find(const PickleValue& dictionary, std::string_view key) const {
  for (std::size_t i = 0; i < dictionary.items.size(); i += 2) {
    const PickleValue& found = at(dictionary.items[i]);
    if (found.kind == Kind::text && found.text == key) return &at(dictionary.items[i + 1]);
  }
  return nullptr;
}

const PickleValue& PtArchive::dictionary(std::span<const std::string_view> wrappers) const {
  if (root().kind != Kind::dictionary) refuse("does not hold a dictionary");
  for (const std::string_view wrapper : wrappers)
    if (const PickleValue* found = find(root(), wrapper); found && found->kind == Kind::dictionary) return *found;
  return root();
}

bool PtArchive::is_tensor(const PickleValue& value) const {
  return is_call(value, "torch._utils._rebuild_tensor_v2", 6) ||
         (is_call(value, "torch._utils._rebuild_parameter", 1) &&
          is_call(at(arguments_of(value)[0]), "torch._utils._rebuild_tensor_v2", 6));
}

TensorRecord PtArchive::tensor(const std::string& name, PickleId id) {
  const PickleValue* value = &pickle_.at(id);
  if (is_call(*value, "torch._utils._rebuild_parameter", 1)) value = &pickle_.at(arguments_of(*value)[0]);
  if (!is_call(*value, "torch._utils._rebuild_tensor_v2", 6))
    refuse("has the entry " + in_quotes(name) + ", which is not a tensor");
  const auto& arguments = arguments_of(*value);  // storage, offset, size, stride, requires_grad, hooks
  const StoredValues storage = stored_values(name, arguments[0]);
  const StridedView view{.offset = integer(arguments[1], name),
                         .shape = integers(arguments[2], name),
                         .strides = integers(arguments[3], name)};
  TensorRecord record{{name, storage.type, view.shape}, {}};
  const auto bytes = byte_size(record.type, record.shape);
  if (!bytes || !view.lies_in(storage.elements))
    refuse("has the tensor " + in_quotes(name) + " of " + shape_text(record.shape) +
           ", which does not fit its storage of " + std::to_string(storage.elements) + " elements");
  if (*bytes > bytes_left_) refuse("has tensors of more than four times the size of the file");
  bytes_left_ -= *bytes;
  record.bytes = view.make_dense(*storage.bytes, names_of(record.type).bits / 8);
  return record;
}

bool PtArchive::is_call(const PickleValue& value, std::string_view function, std::size_t least_arguments) const {
  return value.kind == Kind::call && value.text == function && arguments_of(value).size() >= least_arguments;
}

/// ('storage', torch.FloatStorage, '0', 'cpu', 288): the record data/0.
PtArchive::StoredValues PtArchive::stored_values(const std::string& name, PickleId id) {
  const PickleValue& persistent = pickle_.at(id);
  const PickleValue* what = persistent.kind == Kind::persistent ? &pickle_.at(persistent.items[0]) : nullptr;
  if (!what || what->kind != Kind::tuple || what->items.size() != 5 || text(what->items[0], name) != "storage")
    refuse("has the tensor " + in_quotes(name) + " without a storage");
  const PickleValue& storage = pickle_.at(what->items[1]);
  const auto type = storage.kind == Kind::global && storage.text.starts_with("torch.")
                        ? find_type(&TensorTypeNames::torch, storage.text.substr(6))
                        : std::nullopt;
  if (!type) refuse("has the tensor " + in_quotes(name) + " of an unknown type");
  const auto& bytes = record(text(what->items[2], name));
  const auto elements = static_cast<std::uint64_t>(integer(what->items[4], name));
  const std::uint64_t element_bytes = names_of(*type).bits / 8;
  if (elements > kLargestTensorBytes || elements * element_bytes != bytes.size())
    refuse("has a storage of " + std::to_string(bytes.size()) + " bytes for the " + std::to_string(elements) +
           " elements of " + in_quotes(name));
  return {*type, elements, &bytes};
}

/// Reads each storage once, since tensors may share it.
const std::vector<std::byte>& PtArchive::record(const std::string& key) {
  const auto known = records_.find(key);
  if (known != records_.end()) return known->second;
  const ZipEntry* entry = archive_.find(prefix_ + "data/" + key);
  if (!entry) refuse("lacks its record data/" + key);
  return records_[key] = archive_.read(*entry);
}

const std::string& PtArchive::text(PickleId id, const std::string& of) const {
  if (pickle_.at(id).kind != Kind::text) refuse("has an invalid text for " + of);
  return pickle_.at(id).text;
}

std::int64_t PtArchive::integer(PickleId id, const std::string& of) const {
  if (pickle_.at(id).kind != Kind::integer) refuse("has an invalid number for " + in_quotes(of));
  return pickle_.at(id).number;
}

std::vector<std::int64_t> PtArchive::integers(PickleId id, const std::string& of) const {
  if (pickle_.at(id).kind != Kind::tuple || pickle_.at(id).items.size() > kMostExtents)
    refuse("has an invalid shape or strides for " + in_quotes(of));
  std::vector<std::int64_t> values;
  for (PickleId item : pickle_.at(id).items) values.push_back(integer(item, of));
  return values;
}

std::vector<std::int64_t> dense_strides(std::span<const std::int64_t> shape) {
  std::vector<std::int64_t> strides(shape.size(), 1);
  for (std::size_t axis = shape.size(); axis-- > 1;)
    strides[axis - 1] = strides[axis] * std::max<std::int64_t>(shape[axis], 1);
  return strides;
}

/// _rebuild_tensor_v2(('storage', FloatStorage, '0', 'cpu', n), 0, size, stride, False, OrderedDict())
void write_tensor(PickleWriter& pickle, const TensorInfo& tensor, std::uint64_t bytes, std::size_t index) {
  const TensorTypeNames& type = names_of(tensor.type);
  check(!type.torch.empty(), "PyTorch lacks a storage of type " + std::string(type.safetensors));
  check(byte_size(tensor.type, tensor.shape) == bytes,
        "the bytes of " + in_quotes(tensor.name) + " do not fit " + shape_text(tensor.shape));
  pickle.global("torch._utils", "_rebuild_tensor_v2");
  pickle.mark();
  pickle.mark();
  pickle.text("storage");
  pickle.global("torch", type.torch);
  pickle.text(std::to_string(index));
  pickle.text("cpu");
  pickle.integer(static_cast<std::int64_t>(bytes / (type.bits / 8)));
  pickle.end_tuple();
  pickle.persistent();
  pickle.integer(0);
  pickle.integers(tensor.shape);
  pickle.integers(dense_strides(tensor.shape));
  pickle.boolean(false);
  pickle.empty_ordered_dict();
  pickle.end_tuple();
  pickle.call();
}

void write_pt_archive(FileSystem& files, const fs::path& path, std::string_view pickle,
                      std::span<const TensorRecord* const> tensors, std::string_view about) {
  const auto file = files.create(path);
  ZipWriter archive(*file, path);
  archive.add("archive/data.pkl", bytes_of(pickle));
  archive.add("archive/byteorder", bytes_of("little"));
  for (std::size_t i = 0; i < tensors.size(); ++i) archive.add("archive/data/" + std::to_string(i), tensors[i]->bytes);
  archive.add("archive/version", bytes_of(pt::kVersion));
  if (!about.empty()) archive.add("archive/extra/gradring.json", bytes_of(about));
  archive.finish();
  file->sync();
  file->close();
}

}  // namespace gradring::train
