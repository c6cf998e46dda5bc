// SPDX-License-Identifier: Apache-2.0
#include "train/records/checkpoint/pt_writer.h"

#include "kernels/base/error.h"
#include "train/records/checkpoint/pt_records.h"
#include "train/records/checkpoint/strided_view.h"
#include "train/records/checkpoint/zip_archive.h"

namespace gradring::train {

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
