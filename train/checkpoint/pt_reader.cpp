// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <optional>

#include "train/checkpoint/error.h"
#include "train/checkpoint/pickle.h"
#include "train/checkpoint/pt.h"
#include "train/checkpoint/strided.h"
#include "train/checkpoint/zip_archive.h"

namespace gradring::train {
namespace {

namespace fs = std::filesystem;
using Kind = PickleValue::Kind;

constexpr std::string_view kPickleName = "data.pkl";
constexpr std::uint64_t kMostTimesTheFile = 4;
constexpr std::size_t kMostExtents = 64;  // PyTorch's own bound

std::string text_in(const std::vector<std::byte>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// Makes tensors out of a pickle's values and an archive's records.
class StateDictReader {
 public:
  StateDictReader(const InputFile& file, const fs::path& path)
      : path_(path), archive_(file, path), bytes_left_(file.size() * kMostTimesTheFile) {}

  std::vector<TensorRecord> read() {
    find_prefix();
    pickle_ = read_pickle(text_in(archive_.read(*archive_.find(prefix_ + std::string(kPickleName)))), path_);
    if (const ZipEntry* order = archive_.find(prefix_ + "byteorder");
        order && text_in(archive_.read(*order)) != "little")
      refuse("was saved on a big-endian machine");
    const PickleValue& tensors = state_dict();
    check_names_differ(tensors);
    std::vector<TensorRecord> records;
    for (std::size_t i = 0; i < tensors.items.size(); i += 2)
      records.push_back(tensor(text(tensors.items[i], "a name"), tensors.items[i + 1]));
    return records;
  }

 private:
  [[noreturn]] void refuse(const std::string& found) const {
    throw CheckpointError(path_, found, "save a state_dict: torch.save(model.state_dict(), ...)");
  }

  /// All records lie in one folder, which torch.save names after the file.
  void find_prefix() {
    for (const ZipEntry& entry : archive_.entries()) {
      const auto slash = entry.name.find('/');
      if (slash == entry.name.npos || entry.name.substr(slash + 1) != kPickleName) continue;
      prefix_ = entry.name.substr(0, slash + 1);
      return;
    }
    refuse("is a zip archive without the data.pkl of torch.save");
  }

  /// The dictionary of tensors: the root, or what the root calls so.
  const PickleValue& state_dict() const {
    const PickleValue& root = pickle_.at(pickle_.root);
    if (root.kind != Kind::dictionary) refuse("holds no dictionary");
    for (const char* wrapper : {"state_dict", "model_state_dict", "model"})
      for (std::size_t i = 0; i < root.items.size(); i += 2) {
        const PickleValue& key = pickle_.at(root.items[i]);
        const PickleValue& value = pickle_.at(root.items[i + 1]);
        if (key.kind == Kind::text && key.text == wrapper && value.kind == Kind::dictionary) return value;
      }
    return root;
  }

  TensorRecord tensor(const std::string& name, PickleId id) {
    const PickleValue* value = &pickle_.at(id);
    if (is_call(*value, "torch._utils._rebuild_parameter", 1)) value = &pickle_.at(arguments_of(*value)[0]);
    if (!is_call(*value, "torch._utils._rebuild_tensor_v2", 6))
      refuse("has the entry " + in_quotes(name) + " that is no tensor");
    const auto& arguments = arguments_of(*value);  // storage, offset, size, stride, requires_grad, hooks
    const StoredValues storage = stored_values(name, arguments[0]);
    const StridedView view{.offset = integer(arguments[1], name),
                           .shape = integers(arguments[2], name),
                           .strides = integers(arguments[3], name)};
    TensorRecord record{{name, storage.type, view.shape}, {}};
    const auto bytes = byte_size(record.type, record.shape);
    if (!bytes || !view.lies_in(storage.elements))
      refuse("has the tensor " + in_quotes(name) + " of " + shape_text(record.shape) +
             " that does not fit its storage of " + std::to_string(storage.elements) + " elements");
    if (*bytes > bytes_left_) refuse("has tensors that together are far larger than the file");
    bytes_left_ -= *bytes;
    record.bytes = make_dense(view, *storage.bytes, names_of(record.type).bits / 8);
    return record;
  }

  const std::vector<PickleId>& arguments_of(const PickleValue& call) const { return pickle_.at(call.items[0]).items; }

  bool is_call(const PickleValue& value, std::string_view function, std::size_t least_arguments) const {
    return value.kind == Kind::call && value.text == function && arguments_of(value).size() >= least_arguments;
  }

  struct StoredValues {
    TensorType type;
    std::uint64_t elements;
    const std::vector<std::byte>* bytes;
  };

  /// ('storage', torch.FloatStorage, '0', 'cpu', 288): the record data/0.
  StoredValues stored_values(const std::string& name, PickleId id) {
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

  /// Storages are shared by tensors that share their values; each is read once.
  const std::vector<std::byte>& record(const std::string& key) {
    const auto known = records_.find(key);
    if (known != records_.end()) return known->second;
    const ZipEntry* entry = archive_.find(prefix_ + "data/" + key);
    if (!entry) refuse("lacks its record data/" + key);
    return records_[key] = archive_.read(*entry);
  }

  const std::string& text(PickleId id, const std::string& of) const {
    if (pickle_.at(id).kind != Kind::text) refuse("has something else where a text should be (" + of + ")");
    return pickle_.at(id).text;
  }

  std::int64_t integer(PickleId id, const std::string& of) const {
    if (pickle_.at(id).kind != Kind::integer)
      refuse("has something else where a number of " + in_quotes(of) + " should be");
    return pickle_.at(id).number;
  }

  std::vector<std::int64_t> integers(PickleId id, const std::string& of) const {
    if (pickle_.at(id).kind != Kind::tuple || pickle_.at(id).items.size() > kMostExtents)
      refuse("has something else where the sizes of " + in_quotes(of) + " should be");
    std::vector<std::int64_t> values;
    for (PickleId item : pickle_.at(id).items) values.push_back(integer(item, of));
    return values;
  }

  /// Before anything is made of them: a pickle can name one long text many times.
  void check_names_differ(const PickleValue& tensors) const {
    std::vector<std::string_view> names;
    for (std::size_t i = 0; i < tensors.items.size(); i += 2) names.push_back(text(tensors.items[i], "a name"));
    std::ranges::sort(names);
    if (const auto twice = std::ranges::adjacent_find(names); twice != names.end())
      refuse("has the tensor " + in_quotes(*twice) + " twice");
  }

  const fs::path& path_;
  ZipReader archive_;
  std::uint64_t bytes_left_;
  std::string prefix_;
  Pickle pickle_;
  std::map<std::string, std::vector<std::byte>> records_;
};

}  // namespace

std::vector<TensorRecord> read_pt(const InputFile& file, const fs::path& path) {
  return StateDictReader(file, path).read();
}

}  // namespace gradring::train
