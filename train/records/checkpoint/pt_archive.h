// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "train/records/checkpoint/file_system.h"
#include "train/records/checkpoint/pickle.h"
#include "train/records/checkpoint/pt_records.h"
#include "train/records/checkpoint/tensor_record.h"

namespace gradring::train {

/// A file that torch.save wrote: a pickle, and the bytes of the tensors in it. The readers of state_dicts
/// (tensor_file.h) and of optimizers (torch_optimizer.h) look for what they need in the pickle.
///
/// Errors    CheckpointError, as read_pt; its advice is `advice`.
class PtArchive {
 public:
  PtArchive(const InputFile& file, const std::filesystem::path& path, std::string_view advice);

  const PickleValue& root() const { return at(pickle().root); }
  const PickleValue& at(PickleId id) const { return pickle().at(id); }
  /// The dictionary that the root holds under one of these names, also as the only item of a list, or else the root
  /// itself, which must be one.
  const PickleValue& dictionary(std::span<const std::string_view> wrappers) const;
  /// The value of `key` in a dictionary; null if there is none.
  const PickleValue* find(const PickleValue& dictionary, std::string_view key) const;

  /// Whether it is a tensor of any kind, also one that tensor() rejects.
  bool is_tensor(const PickleValue& value) const;
  /// The values of a tensor, made dense. `name` is its name, also in messages.
  TensorRecord tensor(const std::string& name, PickleId id);
  /// A text; `of` says what for in messages.
  const std::string& text(PickleId id, const std::string& of) const;

  [[noreturn]] void refuse(const std::string& found) const;

 private:
  /// A call that makes a tensor.
  struct Rebuild {
    std::string_view function;
    const std::vector<PickleId>* arguments;
  };
  struct StoredValues {
    TensorType type;
    std::uint64_t elements;
    const std::vector<std::byte>* bytes;
  };

  const Pickle& pickle() const { return records_->pickle(); }
  std::optional<Rebuild> rebuild_of(const PickleValue& value) const;
  void refuse_special(const std::string& name, const Rebuild& rebuild) const;
  StoredValues stored_values(const std::string& name, const Rebuild& rebuild);
  const std::vector<std::byte>& bytes_of_storage(std::string_view key);
  void apply_flags(const Rebuild& rebuild, TensorRecord& record) const;
  bool has_flag(const Rebuild& rebuild, std::string_view name) const;
  std::int64_t integer(PickleId id, const std::string& of) const;
  std::vector<std::int64_t> integers(PickleId id, const std::string& of) const;

  const std::filesystem::path& path_;
  std::string_view advice_;
  std::unique_ptr<PtRecords> records_;
  std::uint64_t bytes_left_;
  std::map<std::string, std::vector<std::byte>, std::less<>> storages_;  // which tensors may share
};

/// Writes the items of a dictionary: tensors by their names. Adds each to `storages`, of which the archive is made.
///
/// Errors    InvalidArgument if PyTorch lacks a type, two tensors have one name, or the bytes contradict the shape.
void write_tensors(PickleWriter& pickle, std::span<const TensorRecord> tensors,
                   std::vector<const TensorRecord*>& storages);

/// Writes and syncs an archive: the pickle, and the bytes of `tensors` as its storages 0, 1, ...
/// `about`: text for the record extra/gradring.json, which PyTorch ignores; empty: no such record.
void write_pt_archive(FileSystem& files, const std::filesystem::path& path, std::string_view pickle,
                      std::span<const TensorRecord* const> tensors, std::string_view about = {});

}  // namespace gradring::train
