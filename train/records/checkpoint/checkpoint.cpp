// SPDX-License-Identifier: Apache-2.0
#include "train/records/checkpoint/checkpoint.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "data/files/sha256.h"
#include "train/records/checkpoint/error.h"
#include "train/records/checkpoint/json_members.h"
#include "train/records/checkpoint/safetensors.h"
#include "train/records/checkpoint/step_folders.h"
#include "train/records/checkpoint/tensor_record.h"

namespace gradring::train {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr int kFormat = 1;
constexpr std::size_t kLargestMeta = 2u << 20;
constexpr std::size_t kHashDigits = 64;
constexpr std::string_view kBeforeHash = ",\n  \"sha256\": \"";
constexpr std::string_view kAfterHash = "\"\n}\n";

FileHashes hashes_of(const SafetensorsPlan& plan) {
  FileHashes hashes{.head = sha256_hex(bytes_of(plan.head)), .tensors = {}};
  for (const TensorRecord* tensor : plan.order) hashes.tensors[tensor->name] = sha256_hex(tensor->bytes);
  return hashes;
}

/// "SHA-256 0123456789ab...". `hash` may be any text of a file that is not trusted.
std::string shown_hash(std::string_view hash) {
  std::string shown(hash.substr(0, 12));
  std::ranges::replace_if(
      shown, [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); }, '?');
  return hash.empty() ? "no SHA-256" : "SHA-256 " + shown + "...";
}

Json json_of(const FileHashes& hashes) { return {{"head", hashes.head}, {"tensors", hashes.tensors}}; }

FileHashes hashes_in(const Json& json, const fs::path& path) {
  const JsonMembers members(json, path);
  return {.head = members.text("head"), .tensors = members.texts("tensors")};
}

/// The text of meta.json. Its last value is the SHA-256 of all text before it: `head -c -68 meta.json | sha256sum`.
///
/// Errors    InvalidArgument if `about` holds text that is not UTF-8, or the file would be above 2 MiB.
std::string meta_text(const CheckpointMeta& meta) {
  Json json = {{"format", kFormat}, {"step", meta.step}};
  json["score"] = meta.score && std::isfinite(*meta.score) ? Json(*meta.score) : Json();
  json["about"] = *meta.about;
  json[kModelFile] = json_of(meta.model);
  json[kStateFile] = json_of(meta.state);
  std::string text;
  try {
    text = json.dump(2);
  } catch (const Json::type_error&) {
    throw InvalidArgument("the metadata of a checkpoint is not UTF-8");
  }
  text.resize(text.size() - 2);  // the last "\n}"
  text += kBeforeHash;
  text += sha256_hex(bytes_of(text));
  text += kAfterHash;
  check(text.size() <= kLargestMeta, "the metadata of a checkpoint exceeds 2 MiB");
  return text;
}

/// The JSON of meta.json without its SHA-256, which is verified.
std::string verified_json(std::string_view text, const fs::path& path) {
  const std::size_t hash_bytes = kBeforeHash.size() + kHashDigits + kAfterHash.size();
  const std::string_view body = text.substr(0, text.size() - std::min(text.size(), kHashDigits + kAfterHash.size()));
  if (text.size() < hash_bytes || !text.ends_with(kAfterHash) || !body.ends_with(kBeforeHash))
    throw CheckpointError(path, "is corrupt: it does not end with its SHA-256", kUseAnotherCheckpoint);
  const std::string expected(text.substr(body.size(), kHashDigits)), found = sha256_hex(bytes_of(body));
  if (found != expected)
    throw CheckpointError(path,
                          "is corrupt: it has " + shown_hash(found) + ", its last line says " + shown_hash(expected),
                          kUseAnotherCheckpoint);
  return std::string(body.substr(0, body.size() - kBeforeHash.size())) + "\n}";
}

/// ", written by 'gradring 9.0'", if meta.json names its writer.
std::string writer_in(const Json& json) {
  const auto about = json.find("about");
  if (about == json.end() || !about->is_object()) return {};
  const auto writer = about->find("made_by");
  if (writer == about->end() || !writer->is_string()) return {};
  return ", written by " + in_quotes(writer->get<std::string>());
}

CheckpointMeta parse_meta(const std::string& text, const fs::path& path) {
  constexpr auto kMost = std::numeric_limits<std::int64_t>::max();
  constexpr double kLargest = std::numeric_limits<double>::max();
  const Json json = parse_checkpoint_json(text, path);
  const JsonMembers members(json, path);
  const auto format = members.number<std::int64_t>("format", 0, kMost);
  if (format > kFormat)
    throw NewerFormatError(
        path, "has format " + std::to_string(format) + writer_in(json),
        "this program reads format " + std::to_string(kFormat) + ": use the gradring that wrote it, or a newer one");
  if (format < kFormat)
    throw CheckpointError(path, "has format " + std::to_string(format) + ", expected " + std::to_string(kFormat),
                          kUseAnotherCheckpoint);
  CheckpointMeta meta{.step = members.number<std::int64_t>("step", 0, kMost),
                      .score = std::nullopt,
                      .about = members.object("about"),
                      .model = hashes_in(members.object(kModelFile), path),
                      .state = hashes_in(members.object(kStateFile), path)};
  if (!members.is_null("score")) meta.score = members.number("score", -kLargest, kLargest);
  return meta;
}

/// Reads a file tensor by tensor, passes those that match their SHA-256 to `take`, and reports the others to `report`.
///
/// Errors    CheckpointError if the file as a whole is invalid; FileError if it could not be read.
void read_verified(FileSystem& files, const fs::path& path, const FileHashes& hashes,
                   const std::function<void(TensorRecord)>& take,
                   const std::function<void(const CheckpointError&)>& report) {
  const auto matches = [&](const std::string& what, std::span<const std::byte> bytes, const std::string& expected) {
    const std::string found = sha256_hex(bytes);
    if (found != expected)
      report(CheckpointError(
          path, "is corrupt: " + what + " has " + shown_hash(found) + ", meta.json says " + shown_hash(expected),
          kUseAnotherCheckpoint));
    return found == expected;
  };
  const SafetensorsReader reader(open_to_read(files, path), path);
  if (!matches("its header", bytes_of(reader.head()), hashes.head)) return;
  for (const StoredTensor& stored : reader.tensors()) {
    TensorRecord tensor = reader.read(stored);
    const auto hash = hashes.tensors.find(tensor.name);
    if (matches("tensor " + in_quotes(tensor.name), tensor.bytes, hash == hashes.tensors.end() ? "" : hash->second))
      take(std::move(tensor));
  }
  if (hashes.tensors.size() > reader.tensors().size())
    report(CheckpointError(path,
                           "has " + std::to_string(reader.tensors().size()) + " tensors, meta.json has hashes of " +
                               std::to_string(hashes.tensors.size()),
                           kUseAnotherCheckpoint));
}

}  // namespace

std::string sha256_hex(std::span<const std::byte> bytes) {
  data::Sha256Sum sum;
  sum.add(bytes);
  return data::to_hex(sum.finish());
}

CheckpointMeta read_meta(FileSystem& files, const fs::path& folder) {
  const fs::path path = folder / kMetaFile;
  const auto file = open_to_read(files, path);
  if (file->size() > kLargestMeta)
    throw CheckpointError(path, "has " + std::to_string(file->size()) + " bytes, at most 2 MiB are expected",
                          kUseAnotherCheckpoint);
  CheckpointMeta meta = parse_meta(verified_json(read_text(*file, path, 0, file->size()), path), path);
  // The folders of checkpoints are counted and ordered by the steps in their names.
  if (const auto named = step_folder_at(folder); named && named->step != meta.step)
    throw CheckpointError(
        path, "has step " + std::to_string(meta.step) + ", its folder is named for step " + std::to_string(named->step),
        "rename the folder to " + step_folder_name(meta.step) + ", or use another checkpoint");
  return meta;
}

void write_checkpoint(FileSystem& files, const fs::path& folder, const Checkpoint& checkpoint) {
  const std::map<std::string, std::string> metadata = {{"step", std::to_string(checkpoint.step)}};
  const SafetensorsPlan model = plan_safetensors(checkpoint.model, metadata);
  const SafetensorsPlan state = plan_safetensors(checkpoint.state, metadata);
  const std::string meta = meta_text({.step = checkpoint.step,
                                      .score = checkpoint.score,
                                      .about = checkpoint.about,
                                      .model = hashes_of(model),
                                      .state = hashes_of(state)});
  write_safetensors(files, folder / kModelFile, model);
  write_safetensors(files, folder / kStateFile, state);
  write_new_file(files, folder / kMetaFile, meta);
  files.sync_folder(folder);
}

Checkpoint read_checkpoint(FileSystem& files, const fs::path& folder) {
  CheckpointMeta meta = read_meta(files, folder);
  Checkpoint checkpoint{
      .step = meta.step, .model = {}, .state = {}, .about = std::move(meta.about), .score = meta.score};
  const auto read = [&](const char* name, const FileHashes& hashes, std::vector<TensorRecord>& list) {
    read_verified(
        files, folder / name, hashes, [&list](TensorRecord tensor) { list.push_back(std::move(tensor)); },
        [](const CheckpointError& error) { throw error; });
  };
  read(kModelFile, meta.model, checkpoint.model);
  read(kStateFile, meta.state, checkpoint.state);
  return checkpoint;
}

std::vector<std::string> verify_checkpoint(FileSystem& files, const fs::path& folder) {
  std::vector<std::string> problems;
  const auto report = [&](const CheckpointError& error) { problems.emplace_back(error.what()); };
  const auto verify = [&](const char* name, const FileHashes& hashes) {
    try {
      read_verified(
          files, folder / name, hashes, [](const TensorRecord&) {}, report);
    } catch (const CheckpointError& error) {
      report(error);
    }
  };
  try {
    const CheckpointMeta meta = read_meta(files, folder);
    verify(kModelFile, meta.model);
    verify(kStateFile, meta.state);
  } catch (const CheckpointError& error) {
    report(error);
  }
  return problems;
}

JsonValue::JsonValue() : JsonValue(nlohmann::ordered_json::object()) {}
JsonValue::JsonValue(nlohmann::ordered_json value)
    : value_(std::make_unique<nlohmann::ordered_json>(std::move(value))) {}
JsonValue::JsonValue(const JsonValue& other) : JsonValue(*other) {}
JsonValue::JsonValue(JsonValue&& other) noexcept = default;
JsonValue& JsonValue::operator=(JsonValue other) noexcept {
  value_.swap(other.value_);
  return *this;
}
JsonValue::~JsonValue() = default;

JsonValue JsonValue::parse(std::string_view text) { return nlohmann::ordered_json::parse(text); }
std::string JsonValue::text() const { return value_->dump(); }
bool JsonValue::operator==(const JsonValue& other) const { return *value_ == *other.value_; }

}  // namespace gradring::train
