// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "train/checkpoint/error.h"
#include "train/checkpoint/file_io.h"
#include "train/checkpoint/safetensors.h"

namespace gradring::train {
namespace {

constexpr std::uint64_t kPrefixBytes = 8;

/// N, judged by what the file can hold before memory is taken for the header.
std::uint64_t read_header_bytes(const InputFile& file, const std::filesystem::path& path) {
  constexpr const char* kAdvice = "this is no sound safetensors file: write it again, or take another";
  if (file.size() < kPrefixBytes) throw CheckpointError(path, "is shorter than 8 bytes", kAdvice);
  std::uint64_t header_bytes = 0;
  read_exactly(file, path, 0, std::as_writable_bytes(std::span(&header_bytes, 1)));
  if (header_bytes > file.size() - kPrefixBytes || header_bytes == 0)
    throw CheckpointError(path,
                          "says that its header has " + std::to_string(header_bytes) + " bytes, in a file of " +
                              std::to_string(file.size()),
                          kAdvice);
  if (header_bytes > kLargestHeaderBytes)
    throw CheckpointError(path, "has a header of " + std::to_string(header_bytes) + " bytes",
                          "more than " + std::to_string(kLargestHeaderBytes) + " are not read: divide the file");
  return header_bytes;
}

}  // namespace

SafetensorsReader::SafetensorsReader(std::unique_ptr<InputFile> file, std::filesystem::path path)
    : file_(std::move(file)), path_(std::move(path)) {
  head_ = read_text(*file_, path_, 0, kPrefixBytes + read_header_bytes(*file_, path_));
  header_ = parse_safetensors_header(std::string_view(head_).substr(kPrefixBytes), file_->size() - head_.size(), path_);
}

TensorRecord SafetensorsReader::read(const StoredTensor& tensor) const {
  TensorRecord record{tensor, std::vector<std::byte>(tensor.end - tensor.begin)};
  read_exactly(*file_, path_, head_.size() + tensor.begin, record.bytes);
  return record;
}

std::vector<TensorRecord> read_safetensors(FileSystem& files, const std::filesystem::path& path) {
  const SafetensorsReader reader(open_to_read(files, path), path);
  std::vector<TensorRecord> records;
  for (const StoredTensor& tensor : reader.tensors()) records.push_back(reader.read(tensor));
  return records;
}

}  // namespace gradring::train
