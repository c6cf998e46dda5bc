// SPDX-License-Identifier: Apache-2.0
#include "train/checkpoint/safetensors_header.h"

#include <algorithm>
#include <tuple>

#include "train/checkpoint/safetensors_listener.h"

namespace gradring::train {
namespace {

void check_names_differ(const std::vector<StoredTensor>& tensors, const SafetensorsListener& listener) {
  std::vector<std::string_view> names;
  names.reserve(tensors.size());
  for (const StoredTensor& tensor : tensors) names.push_back(tensor.name);
  std::ranges::sort(names);
  const auto twice = std::ranges::adjacent_find(names);
  if (twice != names.end()) listener.refuse("has the tensor " + in_quotes(*twice) + " twice");
}

/// The tensors, sorted by their place, must fill the data from its first to its last byte.
void check_coverage(const std::vector<StoredTensor>& tensors, std::uint64_t data_bytes,
                    const SafetensorsListener& listener) {
  std::uint64_t covered = 0;
  for (const StoredTensor& tensor : tensors) {
    if (tensor.begin != covered)
      listener.refuse(std::string(tensor.begin > covered ? "leaves a hole" : "lets tensors overlap") + " at byte " +
                      std::to_string(std::min(tensor.begin, covered)) + " of its data, before " +
                      in_quotes(tensor.name));
    covered = tensor.end;
  }
  if (covered != data_bytes)
    listener.refuse("describes " + std::to_string(covered) + " bytes of tensors and has " + std::to_string(data_bytes));
}

}  // namespace

std::string_view unfit_name(std::string_view name) {
  const auto is_control = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; };
  if (std::ranges::any_of(name, is_control)) return "has control characters";
  if (name == "__metadata__") return "means something else in safetensors";
  return "";
}

SafetensorsHeader parse_safetensors_header(std::string_view text, std::uint64_t data_bytes,
                                           const std::filesystem::path& path) {
  SafetensorsListener listener(path);
  if (!text.starts_with('{')) listener.refuse("has a header that does not begin with '{'");
  if (const auto last = text.find_last_not_of(' '); text[last] != '}')
    listener.refuse("has a header that is padded with something else than spaces");
  if (text.find('\0') != text.npos) listener.refuse("has a zero byte in its header");
  nlohmann::json::sax_parse(text.begin(), text.end(), &listener);
  SafetensorsHeader header = listener.take();
  std::ranges::sort(header.tensors, [](const StoredTensor& a, const StoredTensor& b) {
    return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);
  });
  check_names_differ(header.tensors, listener);
  check_coverage(header.tensors, data_bytes, listener);
  return header;
}

}  // namespace gradring::train
