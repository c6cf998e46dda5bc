// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "train/checkpoint/file_system.h"
#include "train/checkpoint/pickle.h"
#include "train/checkpoint/tensor_record.h"
#include "train/checkpoint/zip_archive.h"

namespace gradring::train {

/// The records of a file of torch.save.
namespace pt {
constexpr std::string_view kPickle = "data.pkl";
constexpr std::string_view kVersion = "3\n";
}  // namespace pt

/// A file that torch.save wrote: a pickle, and the bytes of the tensors in it. The readers of state_dicts
/// (tensor_file.h) and of optimizers (torch_optimizer.h) look for what they need in the pickle.
///
/// Errors    CheckpointError, as read_pt; its advice is `advice`.
class PtArchive {
 public:
  PtArchive(const InputFile& file, const std::filesystem::path& path, std::string_view advice);

  const PickleValue& root() const { return at(pickle_.root); }
  const PickleValue& at(PickleId id) const { return pickle_.at(id); }
  /// The dictionary that the root holds under one of these names, or else the root itself, which must be one.
  const PickleValue& dictionary(std::span<const std::string_view> wrappers) const;
  /// The value of `key` in a dictionary; null if there is none.
  const PickleValue* find(const PickleValue& dictionary, std::string_view key) const;

  bool is_tensor(const PickleValue& value) const;
  /// A dense tensor. `name` is its name, also in messages.
  TensorRecord tensor(const std::string& name, PickleId id);
  /// A text; `of` says what for in messages.
  const std::string& text(PickleId id, const std::string& of) const;

  [[noreturn]] void refuse(const std::string& found) const;

 private:
  struct StoredValues {
    TensorType type;
    std::uint64_t elements;
    const std::vector<std::byte>* bytes;
  };

  void find_prefix();
  const std::vector<PickleId>& arguments_of(const PickleValue& call) const { return at(call.items[0]).items; }
  bool is_call(const PickleValue& value, std::string_view function, std::size_t least_arguments) const;
  StoredValues stored_values(const std::string& name, PickleId id);
  const std::vector<std::byte>& record(const std::string& key);
  std::int64_t integer(PickleId id, const std::string& of) const;
  std::vector<std::int64_t> integers(PickleId id, const std::string& of) const;

  const std::filesystem::path& path_;
  std::string_view advice_;
  ZipReader archive_;
  std::uint64_t bytes_left_;
  std::string prefix_;
  Pickle pickle_;
  std::map<std::string, std::vector<std::byte>> records_;  // storages, which tensors may share
};

/// The strides of a dense, row-major tensor.
std::vector<std::int64_t> dense_strides(std::span<const std::int64_t> shape);

/// Writes the value of a dense tensor whose bytes are the record data/`index` of the archive.
void write_tensor(PickleWriter& pickle, const TensorInfo& tensor, std::uint64_t bytes, std::size_t index);

/// Writes and syncs an archive: the pickle, and the bytes of `tensors` as its storages 0, 1, ...
/// `about`: text for the record extra/gradring.json, which PyTorch ignores; empty: no such record.
void write_pt_archive(FileSystem& files, const std::filesystem::path& path, std::string_view pickle,
                      std::span<const TensorRecord* const> tensors, std::string_view about = {});

}  // namespace gradring::train
