// SPDX-License-Identifier: Apache-2.0
#include <set>
#include <utility>

#include "train/records/checkpoint/pt_archive.h"
#include "train/records/checkpoint/tensor_file.h"

namespace gradring::train {
namespace {

using Kind = PickleValue::Kind;

/// The names under which training scripts keep a state_dict, beside others such as that of an average.
constexpr std::string_view kWrappers[] = {"state_dict", "model_state_dict", "model"};

/// Whether it is a dictionary of tensors by name.
bool is_state_dict(const PtArchive& archive, const PickleValue& value) {
  if (value.kind != Kind::dictionary || value.items.empty()) return false;
  for (std::size_t i = 0; i < value.items.size(); i += 2)
    if (archive.at(value.items[i]).kind != Kind::text || !archive.is_tensor(archive.at(value.items[i + 1])))
      return false;
  return true;
}

/// The value of a known name, or the only state_dict in the root, or the root itself.
const PickleValue& find_state_dict(const PtArchive& archive) {
  const PickleValue& root = archive.dictionary(kWrappers);
  if (&root != &archive.root() || is_state_dict(archive, root)) return root;
  const PickleValue* found = nullptr;
  std::string names;
  std::set<PickleId> seen;  // a pickle can refer to one large dictionary many times
  for (std::size_t i = 0; i < root.items.size(); i += 2) {
    const PickleValue &name = archive.at(root.items[i]), &value = archive.at(root.items[i + 1]);
    if (name.kind != Kind::text || !seen.insert(root.items[i + 1]).second || !is_state_dict(archive, value)) continue;
    names += (found ? " and " : "") + in_quotes(name.text);
    if (std::exchange(found, &value)) archive.refuse("holds several state_dicts, " + names);
  }
  return found ? *found : root;
}

/// Called before any tensor is made: a pickle can refer to one long text many times.
void check_names_differ(const PtArchive& archive, const PickleValue& tensors) {
  std::vector<std::string_view> names;
  for (std::size_t i = 0; i < tensors.items.size(); i += 2) names.push_back(archive.text(tensors.items[i], "a name"));
  if (const auto twice = duplicate_name(std::move(names)))
    archive.refuse("has the tensor " + in_quotes(*twice) + " twice");
}

}  // namespace

std::vector<TensorRecord> read_pt(const InputFile& file, const std::filesystem::path& path) {
  PtArchive archive(file, path, "save a state_dict: torch.save(model.state_dict(), ...)");
  const PickleValue& tensors = find_state_dict(archive);
  check_names_differ(archive, tensors);
  std::vector<TensorRecord> records;
  for (std::size_t i = 0; i < tensors.items.size(); i += 2)
    records.push_back(archive.tensor(archive.text(tensors.items[i], "a name"), tensors.items[i + 1]));
  return records;
}

void write_pt(FileSystem& files, const std::filesystem::path& path, std::span<const TensorRecord> tensors,
              std::string_view about) {
  PickleWriter pickle;
  std::vector<const TensorRecord*> storages;
  pickle.empty_ordered_dict();
  pickle.mark();
  write_tensors(pickle, tensors, storages);
  pickle.end_items();
  write_pt_archive(files, path, pickle.finish(), storages, about);
}

}  // namespace gradring::train
