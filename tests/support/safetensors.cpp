// SPDX-License-Identifier: Apache-2.0
#include "tests/support/safetensors.h"

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <span>
#include <utility>

namespace gradring::tests {
namespace {

using Json = nlohmann::json;

constexpr std::uint64_t kLargestHeader = 16u << 20;
constexpr std::uint64_t kLargestInteger = (1ull << 48) - 1;

std::uint64_t bytes_of(std::string_view dtype) {
  if (dtype == "F64" || dtype == "I64" || dtype == "U64") return 8;
  if (dtype == "F32" || dtype == "I32" || dtype == "U32") return 4;
  if (dtype == "F16" || dtype == "BF16" || dtype == "I16" || dtype == "U16") return 2;
  if (dtype == "U8" || dtype == "I8" || dtype == "BOOL") return 1;
  throw Error("unknown dtype '" + std::string(dtype) + "'");
}

std::vector<std::byte> read_bytes(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  check<Error>(file.is_open(), "cannot be opened");
  std::vector<std::byte> bytes(static_cast<std::size_t>(file.tellg()));
  file.seekg(0);
  file.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  check<Error>(file.good(), "cannot be read to its end");
  return bytes;
}

/// nlohmann::json keeps the last of two equal keys and says nothing: the format forbids them.
Json parse_without_duplicates(std::string_view text) {
  std::vector<std::set<std::string>> keys;
  return Json::parse(text, [&](int, Json::parse_event_t event, Json& value) {
    if (event == Json::parse_event_t::object_start) keys.emplace_back();
    if (event == Json::parse_event_t::object_end) keys.pop_back();
    if (event == Json::parse_event_t::key) {
      const bool is_new = keys.back().insert(value.get<std::string>()).second;
      check<Error>(is_new, "the key " + value.dump() + " stands twice in the header");
    }
    return true;
  });
}

std::uint64_t unsigned_of(const Json& value) {
  check<Error>(value.is_number_unsigned() && value.get<std::uint64_t>() <= kLargestInteger,
               "expected a whole number from 0 to 2^48-1, found " + value.dump());
  return value.get<std::uint64_t>();
}

struct Entry {
  std::string name;
  StoredTensor tensor;
  std::uint64_t begin = 0, end = 0;
};

Entry parse_entry(const std::string& name, const Json& value) {
  check<Error>(value.is_object() && value.size() == 3 && value.at("data_offsets").size() == 2,
               "'" + name + "' must have exactly dtype, shape and two data_offsets");
  Entry entry{.name = name,
              .tensor = {.dtype = value.at("dtype").get<std::string>(), .shape = {}, .bytes = {}},
              .begin = unsigned_of(value.at("data_offsets")[0]),
              .end = unsigned_of(value.at("data_offsets")[1])};
  std::uint64_t bytes = bytes_of(entry.tensor.dtype);
  for (const Json& extent : value.at("shape")) {
    const std::uint64_t count = unsigned_of(extent);
    check<Error>(count == 0 || bytes <= kLargestInteger / count, "'" + name + "' is larger than 2^48 bytes");
    bytes *= count;
    entry.tensor.shape.push_back(static_cast<std::int64_t>(count));
  }
  check<Error>(entry.begin <= entry.end && entry.end - entry.begin == bytes,
               "'" + name + "': shape and data_offsets differ");
  return entry;
}

StoredTensors parse(std::span<const std::byte> file) {
  std::uint64_t header_bytes = 0;
  check<Error>(file.size() >= sizeof(header_bytes), "is shorter than 8 bytes");
  std::memcpy(&header_bytes, file.data(), sizeof(header_bytes));
  check<Error>(header_bytes <= kLargestHeader && header_bytes <= file.size() - 8,
               "says that its header has " + std::to_string(header_bytes) + " bytes");
  const std::string_view text(reinterpret_cast<const char*>(file.data()) + 8, header_bytes);
  check<Error>(text.starts_with('{'), "has a header that does not start with '{'");
  const Json header = parse_without_duplicates(text);
  const auto data = file.subspan(8 + header_bytes);

  std::vector<Entry> entries;
  for (const auto& [name, value] : header.items())
    if (name != "__metadata__") entries.push_back(parse_entry(name, value));
  std::sort(entries.begin(), entries.end(),
            [](const Entry& a, const Entry& b) { return std::pair(a.begin, a.end) < std::pair(b.begin, b.end); });

  StoredTensors tensors;
  std::uint64_t covered = 0;
  for (Entry& entry : entries) {
    check<Error>(entry.begin == covered && entry.end <= data.size(),
                 "leaves a hole, an overlap or a short end at '" + entry.name + "'");
    covered = entry.end;
    const auto range = data.subspan(entry.begin, entry.end - entry.begin);
    entry.tensor.bytes.assign(range.begin(), range.end());
    tensors.emplace(entry.name, std::move(entry.tensor));
  }
  check<Error>(covered == data.size(), "has bytes after its last tensor");
  return tensors;
}

}  // namespace

std::int64_t StoredTensor::elements() const {
  std::int64_t product = 1;
  for (std::int64_t extent : shape) product *= extent;
  return product;
}

StoredTensors read_safetensors(const std::filesystem::path& path) {
  try {
    return parse(read_bytes(path));
  } catch (const std::exception& error) {  // ours and the JSON parser's
    throw Error(path.string() + " " + error.what());
  }
}

StoredTensors read_golden(std::string_view name) {
  return read_safetensors(std::filesystem::path(GRADRING_GOLDEN_DIR) / (std::string(name) + ".safetensors"));
}

}  // namespace gradring::tests
