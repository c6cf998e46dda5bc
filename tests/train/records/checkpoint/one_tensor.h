// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/train/records/checkpoint/tensors.h"
#include "tests/train/support/memory_disk.h"
#include "train/records/checkpoint/file_system.h"
#include "train/records/checkpoint/pickle.h"
#include "train/records/checkpoint/zip_archive.h"

namespace gradring::train {

/// A state_dict of one tensor "w" with any property.
struct OneTensor {
  std::int64_t storage_elements = 6;
  std::int64_t offset = 0;
  std::vector<std::int64_t> shape = {2, 3};
  std::vector<std::int64_t> strides = {3, 1};
  std::string function = "_rebuild_tensor_v2";
  std::string type = "FloatStorage";
  std::string dtype;  ///< of _rebuild_tensor_v3, whose storage is untyped
  std::string flag;   ///< in the metadata, the last argument
  int more_flags = 0;
  std::string record = "0";
  std::size_t data_bytes = 24;
  std::string byteorder = "little";
  bool is_legacy = false;
};

inline void write_persistent_id(PickleWriter& pickle, const OneTensor& w) {
  pickle.mark();
  pickle.text("storage");
  pickle.global(w.dtype.empty() ? "torch" : "torch.storage", w.type);
  pickle.text(w.record);
  pickle.text("cpu");
  pickle.integer(w.storage_elements);
  if (w.is_legacy) pickle.none();
  pickle.end_tuple();
}

/// The call that makes the tensor.
inline void write_rebuild(PickleWriter& pickle, const OneTensor& w) {
  pickle.global("torch._utils", w.function);
  pickle.mark();
  write_persistent_id(pickle, w);
  pickle.persistent();
  pickle.integer(w.offset);
  pickle.integers(w.shape);
  pickle.integers(w.strides);
  pickle.boolean(false);
  pickle.empty_ordered_dict();
  if (!w.dtype.empty()) pickle.global("torch", w.dtype);
  if (!w.flag.empty()) {
    pickle.empty_dict();
    pickle.mark();
    pickle.text(w.flag);
    pickle.boolean(true);
    for (int i = 0; i < w.more_flags; ++i) {
      pickle.text("flag " + std::to_string(i));
      pickle.boolean(true);
    }
    pickle.end_items();
  }
  pickle.end_tuple();
  pickle.call();
}

inline void write_state_dict(PickleWriter& pickle, const OneTensor& w) {
  pickle.empty_ordered_dict();
  pickle.mark();
  pickle.text("w");
  write_rebuild(pickle, w);
  pickle.end_items();
}

inline std::string pickle_of(const OneTensor& w) {
  PickleWriter pickle;
  write_state_dict(pickle, w);
  return pickle.finish();
}

/// 0, 1, 2, ...
inline std::vector<std::byte> data_of(const OneTensor& w) {
  std::vector<std::byte> data(w.data_bytes);
  for (std::size_t i = 0; i < data.size(); ++i) data[i] = static_cast<std::byte>(i);
  return data;
}

inline void write_archive(FileSystem& files, const std::string& pickle, const OneTensor& w = {}) {
  const auto file = files.create("/a");
  ZipWriter archive(*file, "/a");
  archive.add("model/data.pkl", bytes_of(pickle));
  archive.add("model/byteorder", bytes_of(w.byteorder));
  archive.add("model/data/0", data_of(w));
  archive.finish();
}

}  // namespace gradring::train
