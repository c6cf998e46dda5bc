// SPDX-License-Identifier: Apache-2.0
#include "train/checkpoint/tensor_file.h"

#include <algorithm>

#include "train/checkpoint/file_io.h"
#include "train/checkpoint/npy.h"
#include "train/checkpoint/pt.h"
#include "train/checkpoint/safetensors.h"

namespace gradring::train {

std::vector<TensorRecord> read_tensor_file(FileSystem& files, const std::filesystem::path& path) {
  const auto file = open_to_read(files, path);
  const std::string start = read_text(*file, path, 0, std::min<std::uint64_t>(file->size(), 6));
  if (start.starts_with("PK")) return read_pt(*file, path);
  if (start != "\x93NUMPY") return read_safetensors(files, path);
  TensorRecord record = read_npy(*file, path);
  record.name = path.stem().string();
  return {std::move(record)};
}

}  // namespace gradring::train
