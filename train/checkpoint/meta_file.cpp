// SPDX-License-Identifier: Apache-2.0
#include "train/checkpoint/meta_file.h"

#include <cmath>
#include <limits>

#include "data/files/sha256.h"
#include "train/checkpoint/checkpoint.h"
#include "train/checkpoint/error.h"
#include "train/checkpoint/file_io.h"
#include "train/checkpoint/json_members.h"
#include "train/checkpoint/step_folder.h"

namespace gradring::train {
namespace {

using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

constexpr int kFormat = 1;
constexpr std::size_t kLargestMeta = 2u << 20;
constexpr std::size_t kSumDigits = 64;
constexpr std::string_view kBeforeSum = ",\n  \"sha256\": \"";
constexpr std::string_view kAfterSum = "\"\n}\n";
constexpr const char* kAdvice = "it was damaged: take another checkpoint";

Json json_of(const FileSums& sums) { return {{"head", sums.head}, {"tensors", sums.tensors}}; }

FileSums sums_in(const Json& json, const fs::path& path) {
  const JsonMembers members(json, path);
  return {.head = members.text("head"), .tensors = members.texts("tensors")};
}

/// The JSON without its seal, if the seal is right.
std::optional<std::string> unsealed(std::string_view text) {
  const std::size_t seal_bytes = kBeforeSum.size() + kSumDigits + kAfterSum.size();
  if (text.size() < seal_bytes || !text.ends_with(kAfterSum)) return std::nullopt;
  const std::string_view body = text.substr(0, text.size() - kSumDigits - kAfterSum.size());
  if (!body.ends_with(kBeforeSum) || sum_of(bytes_of(body)) != text.substr(body.size(), kSumDigits))
    return std::nullopt;
  return std::string(body.substr(0, body.size() - kBeforeSum.size())) + "\n}";
}

CheckpointMeta parsed(const std::string& text, const fs::path& path) {
  constexpr auto kMost = std::numeric_limits<std::int64_t>::max();
  const Json json = parse_checkpoint_json(text, path);
  const JsonMembers members(json, path);
  const auto format = members.number<std::int64_t>("format", 0, kMost);
  if (format != kFormat)
    throw CheckpointError(
        path, "is of format " + std::to_string(format),
        "this program reads format " + std::to_string(kFormat) + ": take the gradring that wrote it, or a newer one");
  CheckpointMeta meta{.step = members.number<std::int64_t>("step", 0, kMost),
                      .score = std::nullopt,
                      .about = members.object("about"),
                      .model = sums_in(members.object(kModelFile), path),
                      .state = sums_in(members.object(kStateFile), path)};
  constexpr double kLargest = std::numeric_limits<double>::max();
  if (!members.is_null("score")) meta.score = members.number("score", -kLargest, kLargest);
  return meta;
}

/// Steps are counted and compared by the names of folders.
void check_step(const CheckpointMeta& meta, const fs::path& path, const fs::path& folder) {
  const auto named = step_folder_at(folder);
  if (!named || named->step == meta.step) return;
  throw CheckpointError(path,
                        "is of step " + std::to_string(meta.step) + ", but its folder is named for step " +
                            std::to_string(named->step),
                        "rename the folder to " + step_folder_name(meta.step) + ", or take another checkpoint");
}

}  // namespace

std::string sum_of(std::span<const std::byte> bytes) {
  data::Sha256Sum sum;
  sum.add(bytes);
  return data::to_hex(sum.finish());
}

FileSums sums_of(const SafetensorsPlan& plan) {
  FileSums sums{.head = sum_of(bytes_of(plan.head)), .tensors = {}};
  for (const TensorRecord* tensor : plan.order) sums.tensors[tensor->name] = sum_of(tensor->bytes);
  return sums;
}

std::string meta_text(const CheckpointMeta& meta) {
  Json json = {{"format", kFormat}, {"step", meta.step}};
  json["score"] = meta.score && std::isfinite(*meta.score) ? Json(*meta.score) : Json();
  json["about"] = meta.about;
  json[kModelFile] = json_of(meta.model);
  json[kStateFile] = json_of(meta.state);
  std::string text;
  try {
    text = json.dump(2);
  } catch (const Json::type_error&) {
    throw InvalidArgument("what a checkpoint is to say about itself is not UTF-8");
  }
  text.resize(text.size() - 2);  // the last "\n}"
  text += kBeforeSum;
  text += sum_of(bytes_of(text));
  text += kAfterSum;
  check(text.size() <= kLargestMeta, "so much does not fit a meta.json");
  return text;
}

CheckpointMeta read_meta(FileSystem& files, const fs::path& folder) {
  const fs::path path = folder / kMetaFile;
  const auto file = open_to_read(files, path);
  if (file->size() > kLargestMeta)
    throw CheckpointError(path, "has " + std::to_string(file->size()) + " bytes",
                          "no meta.json of gradring is so large");
  const auto json = unsealed(read_text(*file, path, 0, file->size()));
  if (!json) throw CheckpointError(path, "is not as it was written (its checksum differs)", kAdvice);
  CheckpointMeta meta = parsed(*json, path);
  check_step(meta, path, folder);
  return meta;
}

}  // namespace gradring::train
