// SPDX-License-Identifier: Apache-2.0
#include "train/records/checkpoint/pt_archive.h"

#include <algorithm>
#include <set>

#include "kernels/base/error.h"
#include "train/records/checkpoint/error.h"
#include "train/records/checkpoint/zip_archive.h"

namespace gradring::train {
namespace {

namespace fs = std::filesystem;
using Kind = PickleValue::Kind;

/// Tensors may be larger than the file, since they may share storages and repeat elements.
constexpr std::uint64_t kMostTimesTheFile = 4, kMoreBytes = 32u << 20;
constexpr std::size_t kMostExtents = 64;  // PyTorch's own limit
constexpr std::size_t kMostFlags = 64;    // keys and values; PyTorch has two flags

constexpr std::string_view kRebuildTensor = "torch._utils._rebuild_tensor";      // until PyTorch 0.4
constexpr std::string_view kRebuildTensor2 = "torch._utils._rebuild_tensor_v2";  // a storage with a type
constexpr std::string_view kRebuildTensor3 = "torch._utils._rebuild_tensor_v3";  // an untyped storage, and a dtype
constexpr std::size_t kDtypeArgument = 6;

/// Calls whose first argument is a tensor with all values.
constexpr std::string_view kTensorWrappers[] = {"torch._utils._rebuild_parameter",
                                                "torch._utils._rebuild_parameter_with_state",
                                                "torch._utils._rebuild_device_tensor_from_cpu_tensor"};

struct Special {
  std::string_view function, what, advice;
};

constexpr Special kSpecials[] = {
    {"torch._utils._rebuild_sparse_tensor", "is sparse", "save it dense: tensor.to_dense()"},
    {"torch._utils._rebuild_qtensor", "is quantized", "save it dequantized: tensor.dequantize()"},
    {"torch._utils._rebuild_meta_tensor_no_storage", "is on the device 'meta' and has no values",
     "load the weights before they are saved"},
    {"torch._utils._rebuild_wrapper_subclass", "is of a subclass without values", "save plain tensors"},
};

/// Negates each `every`-th number, beginning with `first`: flips the sign in its last byte.
void negate(std::vector<std::byte>& bytes, std::size_t number_bytes, std::size_t first, std::size_t every) {
  for (std::size_t end = (first + 1) * number_bytes; end <= bytes.size(); end += every * number_bytes)
    bytes[end - 1] ^= std::byte{0x80};
}

/// Of a tensor whose bytes are the record data/`index`:
/// _rebuild_tensor_v2(('storage', FloatStorage, '0', 'cpu', n), 0, size, stride, False, OrderedDict())
void write_tensor(PickleWriter& pickle, const TensorRecord& tensor, std::size_t index) {
  const std::size_t bytes = tensor.bytes.size();
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

}  // namespace

PtArchive::PtArchive(const InputFile& file, const fs::path& path, std::string_view advice)
    : path_(path),
      advice_(advice),
      records_(open_pt_records(file, path)),
      bytes_left_(file.size() * kMostTimesTheFile + kMoreBytes) {}

void PtArchive::refuse(const std::string& found) const { throw CheckpointError(path_, found, advice_); }

const PickleValue* PtArchive::find(const PickleValue& dictionary, std::string_view key) const {
  for (std::size_t i = 0; i < dictionary.items.size(); i += 2) {
    const PickleValue& found = at(dictionary.items[i]);
    if (found.kind == Kind::text && found.text == key) return &at(dictionary.items[i + 1]);
  }
  return nullptr;
}

const PickleValue& PtArchive::dictionary(std::span<const std::string_view> wrappers) const {
  if (root().kind != Kind::dictionary) refuse("does not hold a dictionary");
  for (const std::string_view wrapper : wrappers) {
    const PickleValue* found = find(root(), wrapper);
    if (found && found->kind == Kind::list && found->items.size() == 1) found = &at(found->items[0]);
    if (found && found->kind == Kind::dictionary) return *found;
  }
  return root();
}

bool PtArchive::is_tensor(const PickleValue& value) const { return rebuild_of(value).has_value(); }

/// Looks through parameters and tensors with attributes of their own.
std::optional<PtArchive::Rebuild> PtArchive::rebuild_of(const PickleValue& value) const {
  if (value.kind != Kind::call) return std::nullopt;
  constexpr int kMostWrappers = 8;
  Rebuild rebuild{value.text, &at(value.items[0]).items};
  for (int depth = 0; depth < kMostWrappers; ++depth) {
    const std::vector<PickleId>& arguments = *rebuild.arguments;
    if (rebuild.function == "torch._tensor._rebuild_from_type_v2") {  // function, type, its arguments, attributes
      if (arguments.size() < 3 || at(arguments[0]).kind != Kind::global || at(arguments[2]).kind != Kind::tuple)
        return std::nullopt;
      rebuild = {at(arguments[0]).text, &at(arguments[2]).items};
    } else if (std::ranges::find(kTensorWrappers, rebuild.function) != std::end(kTensorWrappers)) {
      if (arguments.empty() || at(arguments[0]).kind != Kind::call) return std::nullopt;
      const PickleValue& wrapped = at(arguments[0]);
      rebuild = {wrapped.text, &at(wrapped.items[0]).items};
    } else {
      break;
    }
  }
  const std::size_t arguments = rebuild.arguments->size();
  const bool is_special = std::ranges::find(kSpecials, rebuild.function, &Special::function) != std::end(kSpecials);
  const bool is_plain = (rebuild.function == kRebuildTensor && arguments >= 4) ||
                        (rebuild.function == kRebuildTensor2 && arguments >= 6) ||
                        (rebuild.function == kRebuildTensor3 && arguments > kDtypeArgument);
  return is_special || is_plain ? std::optional(rebuild) : std::nullopt;
}

void PtArchive::refuse_special(const std::string& name, const Rebuild& rebuild) const {
  const auto* const special = std::ranges::find(kSpecials, rebuild.function, &Special::function);
  if (special == std::end(kSpecials)) return;
  throw CheckpointError(path_, "has the tensor " + in_quotes(name) + ", which " + std::string(special->what),
                        special->advice);
}

TensorRecord PtArchive::tensor(const std::string& name, PickleId id) {
  const auto rebuild = rebuild_of(at(id));
  if (!rebuild) refuse("has the entry " + in_quotes(name) + ", which is not a tensor");
  refuse_special(name, *rebuild);
  const auto& arguments = *rebuild->arguments;  // storage, offset, size, stride, requires_grad, hooks, ...
  const StoredValues storage = stored_values(name, *rebuild);
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
  require_memory(path_, *bytes);
  const std::size_t element_bytes = names_of(record.type).bits / 8;
  record.bytes = view.make_dense(*storage.bytes, element_bytes);
  if (records_->is_big_endian()) swap_byte_order(record);
  apply_flags(*rebuild, record);
  return record;
}

/// PyTorch computes -x.imag and x.conj() only when it needs them: until then the tensor has a flag.
void PtArchive::apply_flags(const Rebuild& rebuild, TensorRecord& record) const {
  using enum TensorType;
  const bool is_complex = record.type == c64;
  const bool has_signs =
      is_complex || record.type == f16 || record.type == bf16 || record.type == f32 || record.type == f64;
  const bool is_negated = has_flag(rebuild, "neg"), is_conjugated = has_flag(rebuild, "conj");
  if ((is_negated && !has_signs) || (is_conjugated && !is_complex))
    throw CheckpointError(path_,
                          "has the tensor " + in_quotes(record.name) + " of type " +
                              std::string(names_of(record.type).safetensors) + " that is to be " +
                              (is_negated ? "negated" : "conjugated") + " when it is loaded, which is not supported",
                          "save tensor.resolve_neg().resolve_conj()");
  const std::size_t number_bytes = names_of(record.type).bits / 8 / (is_complex ? 2 : 1);
  if (is_negated) negate(record.bytes, number_bytes, 0, 1);
  if (is_conjugated) negate(record.bytes, number_bytes, 1, 2);
}

/// Whether the last argument, the metadata, has a flag.
bool PtArchive::has_flag(const Rebuild& rebuild, std::string_view name) const {
  const std::size_t index = rebuild.function == kRebuildTensor3 ? kDtypeArgument + 1 : kDtypeArgument;
  if (rebuild.arguments->size() <= index) return false;
  const PickleValue& metadata = at((*rebuild.arguments)[index]);
  // Tensors can share a dictionary, which is searched for each of them.
  if (metadata.items.size() > kMostFlags) refuse("has a tensor with metadata of more than 32 entries");
  const PickleValue* const flag = metadata.kind == Kind::dictionary ? find(metadata, name) : nullptr;
  return flag && flag->kind == Kind::boolean && flag->number != 0;
}

PtArchive::StoredValues PtArchive::stored_values(const std::string& name, const Rebuild& rebuild) {
  const auto storage = storage_in(pickle(), at(rebuild.arguments->front()));
  if (!storage) refuse("has the tensor " + in_quotes(name) + " without a storage");
  const bool is_untyped = rebuild.function == kRebuildTensor3;
  const std::string_view type_name =
      is_untyped ? std::string_view(at((*rebuild.arguments)[kDtypeArgument]).text) : storage->type;
  const auto type = torch_type(type_name);
  if (!type) refuse("has the tensor " + in_quotes(name) + " of the unknown type " + in_quotes(type_name));
  const auto& bytes = bytes_of_storage(storage->key);
  const std::uint64_t element_bytes = names_of(*type).bits / 8;
  const bool fits =
      storage->elements <= kLargestTensorBytes && storage->elements * (is_untyped ? 1 : element_bytes) == bytes.size();
  if (!fits || is_untyped != storage->is_untyped())
    refuse("has a storage of " + std::to_string(bytes.size()) + " bytes for the " + std::to_string(storage->elements) +
           " elements of " + in_quotes(name));
  return {*type, bytes.size() / element_bytes, &bytes};
}

/// Reads each storage once.
const std::vector<std::byte>& PtArchive::bytes_of_storage(std::string_view key) {
  const auto known = storages_.find(key);
  if (known != storages_.end()) return known->second;
  auto bytes = records_->storage(key);
  if (!bytes) refuse("lacks its record data/" + std::string(key));
  return storages_[std::string(key)] = std::move(*bytes);
}

const std::string& PtArchive::text(PickleId id, const std::string& of) const {
  if (at(id).kind != Kind::text) refuse("has an invalid text for " + of);
  return at(id).text;
}

std::int64_t PtArchive::integer(PickleId id, const std::string& of) const {
  if (at(id).kind != Kind::integer) refuse("has an invalid number for " + in_quotes(of));
  return at(id).number;
}

std::vector<std::int64_t> PtArchive::integers(PickleId id, const std::string& of) const {
  if (at(id).kind != Kind::tuple || at(id).items.size() > kMostExtents)
    refuse("has an invalid shape or strides for " + in_quotes(of));
  std::vector<std::int64_t> values;
  for (PickleId item : at(id).items) values.push_back(integer(item, of));
  return values;
}

void write_tensors(PickleWriter& pickle, std::span<const TensorRecord> tensors,
                   std::vector<const TensorRecord*>& storages) {
  std::set<std::string_view> names;
  for (const TensorRecord& tensor : tensors) {
    check(names.insert(tensor.name).second, "two tensors are named " + in_quotes(tensor.name));
    pickle.text(tensor.name);
    write_tensor(pickle, tensor, storages.size());
    storages.push_back(&tensor);
  }
}

void write_pt_archive(FileSystem& files, const std::filesystem::path& path, std::string_view pickle,
                      std::span<const TensorRecord* const> tensors, std::string_view about) {
  const auto file = files.create(path);
  ZipWriter archive(*file, path);
  archive.add("archive/" + std::string(pt::kPickle), bytes_of(pickle));
  archive.add("archive/" + std::string(pt::kByteOrder), bytes_of("little"));
  for (std::size_t i = 0; i < tensors.size(); ++i) archive.add("archive/data/" + std::to_string(i), tensors[i]->bytes);
  archive.add("archive/version", bytes_of(pt::kVersion));
  if (!about.empty()) archive.add("archive/extra/gradring.json", bytes_of(about));
  archive.finish();
  file->sync();
  file->close();
}

}  // namespace gradring::train
