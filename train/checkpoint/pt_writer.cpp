// SPDX-License-Identifier: Apache-2.0
#include <set>

#include "kernels/runtime/error.h"
#include "train/checkpoint/file_io.h"
#include "train/checkpoint/pickle_writer.h"
#include "train/checkpoint/pt.h"
#include "train/checkpoint/strided.h"
#include "train/checkpoint/zip_archive.h"

namespace gradring::train {
namespace {

constexpr std::string_view kFormatVersion = "3\n";

void check_tensors(std::span<const TensorRecord> tensors) {
  std::set<std::string_view> names;
  for (const TensorRecord& tensor : tensors) {
    const TensorTypeNames& type = names_of(tensor.type);
    check(!type.torch.empty(), "PyTorch has no storage of type " + std::string(type.safetensors));
    check(byte_size(tensor.type, tensor.shape) == tensor.bytes.size(),
          "the bytes of " + in_quotes(tensor.name) + " are not " + shape_text(tensor.shape));
    check(names.insert(tensor.name).second, "two tensors are called " + in_quotes(tensor.name));
  }
}

/// _rebuild_tensor_v2(('storage', FloatStorage, '0', 'cpu', n), 0, size, stride, False, OrderedDict())
void write_tensor(PickleWriter& pickle, const TensorRecord& tensor, std::size_t index) {
  const TensorTypeNames& type = names_of(tensor.type);
  pickle.global("torch._utils", "_rebuild_tensor_v2");
  pickle.mark();
  pickle.mark();
  pickle.text("storage");
  pickle.global("torch", type.torch);
  pickle.text(std::to_string(index));
  pickle.text("cpu");
  pickle.integer(static_cast<std::int64_t>(tensor.bytes.size() / (type.bits / 8)));
  pickle.end_tuple();
  pickle.persistent();
  pickle.integer(0);
  pickle.integers(tensor.shape);
  pickle.integers(dense_strides(tensor.shape));
  pickle.no();
  pickle.empty_ordered_dict();
  pickle.end_tuple();
  pickle.call();
}

std::string state_dict_pickle(std::span<const TensorRecord> tensors) {
  PickleWriter pickle;
  pickle.empty_ordered_dict();
  pickle.mark();
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    pickle.text(tensors[i].name);
    write_tensor(pickle, tensors[i], i);
  }
  pickle.end_items();
  return pickle.finish();
}

}  // namespace

void write_pt(FileSystem& files, const std::filesystem::path& path, std::span<const TensorRecord> tensors) {
  check_tensors(tensors);
  const std::string pickle = state_dict_pickle(tensors);
  const auto file = files.create(path);
  ZipWriter archive(*file, path);
  archive.add("archive/data.pkl", bytes_of(pickle));
  archive.add("archive/byteorder", bytes_of("little"));
  for (std::size_t i = 0; i < tensors.size(); ++i) archive.add("archive/data/" + std::to_string(i), tensors[i].bytes);
  archive.add("archive/version", bytes_of(kFormatVersion));
  archive.finish();
  file->sync();
  file->close();
}

}  // namespace gradring::train
