// SPDX-License-Identifier: Apache-2.0
#include "train/checkpoint/tensor_file.h"

#include <algorithm>

#include "train/checkpoint/error.h"
#include "train/checkpoint/safetensors.h"

namespace gradring::train {
namespace {

constexpr std::uint64_t kStartBytes = 32;  // enough for a pickle of one number

/// A bare pickle begins with its protocol. So may the length of a safetensors header, but not one below the limit.
bool is_pickle(std::string_view start) {
  if (start.size() < 8 || start[0] != '\x80' || start[1] < 2 || start[1] > 5) return false;
  return get_little_endian<std::uint64_t>(start, 0) > kLargestHeaderBytes;
}

/// PyTorch before 1.6 wrote several pickles, of which the first holds this number, and then the bytes of the tensors.
[[noreturn]] void refuse_bare_pickle(const std::filesystem::path& path, std::string_view start) {
  constexpr std::string_view kTorchMagic("\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19", 12);
  if (start.find(kTorchMagic) != start.npos)
    throw CheckpointError(path, "is in the legacy format of torch.save (before PyTorch 1.6), which is not supported",
                          "convert it in Python: torch.save(torch.load(\"" + path.filename().string() +
                              "\"), \"new.pt\", _use_new_zipfile_serialization=True)");
  throw CheckpointError(path, "is a Python pickle without PyTorch's zip archive",
                        "load it in Python and save its tensors: torch.save(state_dict, \"new.pt\")");
}

/// What is often given instead of a safetensors file, by its first bytes. Checked only if no safetensors header begins
/// there.
struct Mistaken {
  std::string_view start, what, advice;
};

constexpr Mistaken kMistaken[] = {
    {"version https://git-lfs", "is a Git LFS pointer to a file", "fetch the file itself: git lfs pull"},
    {"\x1f\x8b", "is compressed with gzip", "decompress it with gunzip"},
    {"<!DOCTYPE", "is a web page", "download the file itself"},
    {"<!doctype", "is a web page", "download the file itself"},
    {"<html", "is a web page", "download the file itself"},
};

void refuse_mistaken(const std::filesystem::path& path, std::string_view start) {
  if (start.substr(std::min(start.size(), sizeof(std::uint64_t))).starts_with('{')) return;
  for (const auto& [first, what, advice] : kMistaken)
    if (start.starts_with(first)) throw CheckpointError(path, std::string(what), std::string(advice));
}

}  // namespace

std::vector<TensorRecord> read_tensor_file(FileSystem& files, const std::filesystem::path& path) {
  const auto file = open_to_read(files, path);
  const std::string start = read_text(*file, path, 0, std::min(file->size(), kStartBytes));
  if (start.starts_with("PK")) return read_pt(*file, path);
  if (is_pickle(start)) refuse_bare_pickle(path, start);
  refuse_mistaken(path, start);
  if (!start.starts_with("\x93NUMPY")) return read_safetensors(files, path);
  TensorRecord record = read_npy(*file, path);
  record.name = path.stem().string();
  return {std::move(record)};
}

}  // namespace gradring::train
