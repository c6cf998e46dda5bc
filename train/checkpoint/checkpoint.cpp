// SPDX-License-Identifier: Apache-2.0
#include "train/checkpoint/checkpoint.h"

#include <functional>

#include "train/checkpoint/error.h"
#include "train/checkpoint/file_io.h"
#include "train/checkpoint/meta_file.h"
#include "train/checkpoint/safetensors.h"

namespace gradring::train {
namespace {

namespace fs = std::filesystem;

/// Reads a file tensor by tensor, compares each with its sum, and hands those that are sound to `take`.
///
/// Errors    CheckpointError if the file as a whole is damaged; FileError if it could not be read.
void read_verified(FileSystem& files, const fs::path& path, const FileSums& sums,
                   const std::function<void(TensorRecord)>& take,
                   const std::function<void(const CheckpointError&)>& complain) {
  const auto differs = [&](const std::string& what) {
    complain(
        CheckpointError(path, what + " not as saved (the SHA-256 differs)", "it was damaged: take another checkpoint"));
  };
  const SafetensorsReader reader(open_to_read(files, path), path);
  if (sum_of(bytes_of(reader.head())) != sums.head) return differs("its header is");
  for (const StoredTensor& stored : reader.tensors()) {
    TensorRecord tensor = reader.read(stored);
    const auto sum = sums.tensors.find(tensor.name);
    if (sum == sums.tensors.end() || sum->second != sum_of(tensor.bytes))
      differs("the bytes of " + in_quotes(tensor.name) + " are");
    else
      take(std::move(tensor));
  }
}

[[noreturn]] void refuse(const CheckpointError& error) { throw error; }

}  // namespace

void write_checkpoint(FileSystem& files, const fs::path& folder, const Checkpoint& checkpoint) {
  const std::map<std::string, std::string> metadata = {{"step", std::to_string(checkpoint.step)}};
  const SafetensorsPlan model = plan_safetensors(checkpoint.model, metadata);
  const SafetensorsPlan state = plan_safetensors(checkpoint.state, metadata);
  const std::string meta = meta_text({.step = checkpoint.step,
                                      .score = checkpoint.score,
                                      .about = checkpoint.about,
                                      .model = sums_of(model),
                                      .state = sums_of(state)});
  write_safetensors(files, folder / kModelFile, model);
  write_safetensors(files, folder / kStateFile, state);
  write_new_file(files, folder / kMetaFile, meta);
  files.sync_folder(folder);
}

Checkpoint read_checkpoint(FileSystem& files, const fs::path& folder) {
  CheckpointMeta meta = read_meta(files, folder);
  Checkpoint checkpoint{
      .step = meta.step, .model = {}, .state = {}, .about = std::move(meta.about), .score = meta.score};
  const auto append_to = [](std::vector<TensorRecord>& list) {
    return [&list](TensorRecord tensor) { list.push_back(std::move(tensor)); };
  };
  read_verified(files, folder / kModelFile, meta.model, append_to(checkpoint.model), refuse);
  read_verified(files, folder / kStateFile, meta.state, append_to(checkpoint.state), refuse);
  return checkpoint;
}

std::vector<std::string> verify_checkpoint(FileSystem& files, const fs::path& folder) {
  std::vector<std::string> problems;
  const auto complain = [&](const CheckpointError& error) { problems.emplace_back(error.what()); };
  const auto verify = [&](const char* name, const FileSums& sums) {
    try {
      read_verified(
          files, folder / name, sums, [](const TensorRecord&) {}, complain);
    } catch (const CheckpointError& error) {
      complain(error);
    }
  };
  try {
    const CheckpointMeta meta = read_meta(files, folder);
    verify(kModelFile, meta.model);
    verify(kStateFile, meta.state);
  } catch (const CheckpointError& error) {
    complain(error);
  }
  return problems;
}

}  // namespace gradring::train
