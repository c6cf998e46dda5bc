// SPDX-License-Identifier: Apache-2.0
#include "train/checkpoint/safetensors_header.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "train/checkpoint/error.h"

namespace gradring::train {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kMostTensors = 65'536;
constexpr std::size_t kMostMetadata = 4'096;
constexpr std::size_t kMostExtents = 16;
constexpr std::uint64_t kLargestInteger = (std::uint64_t{1} << 48) - 1;

/// Hears the header's JSON value by value, and refuses the first one that is out of place.
class HeaderListener final : public nlohmann::json_sax<Json> {
 public:
  explicit HeaderListener(const std::filesystem::path& path) : path_(path) {}

  SafetensorsHeader take() { return std::move(header_); }

  [[noreturn]] void refuse(const std::string& found) const {
    throw CheckpointError(path_, found, "this is no sound safetensors file: write it again, or take another");
  }

  bool null() override { misplaced("null"); }
  bool boolean(bool) override { misplaced("true or false"); }
  bool number_float(double, const std::string& text) override { misplaced("the number " + in_quotes(text)); }
  bool number_integer(std::int64_t value) override { misplaced("the number " + std::to_string(value)); }
  bool binary(Json::binary_t&) override { misplaced("binary data"); }

  bool number_unsigned(std::uint64_t value) override {
    if (place_ != Place::shape && place_ != Place::offsets) misplaced("the number " + std::to_string(value));
    if (value > kLargestInteger) refuse("has a number above 2^48 - 1 in the entry of " + in_quotes(entry_.name));
    if (place_ == Place::offsets)
      offsets_.push_back(value);
    else
      entry_.shape.push_back(static_cast<std::int64_t>(value));
    if (offsets_.size() > 2) refuse("has more than two data_offsets for " + in_quotes(entry_.name));
    if (entry_.shape.size() > kMostExtents) refuse("has more than 16 extents for " + in_quotes(entry_.name));
    return true;
  }

  bool string(std::string& value) override {
    if (place_ == Place::metadata) {
      header_.metadata[metadata_key_] = std::move(value);
      return true;
    }
    if (place_ != Place::type) misplaced("the text " + in_quotes(value));
    const auto type = find_type(&TensorTypeNames::safetensors, value);
    if (!type) refuse("has the unknown type " + in_quotes(value) + " for " + in_quotes(entry_.name));
    entry_.type = *type;
    place_ = Place::entry;
    return true;
  }

  bool start_object(std::size_t) override {
    switch (place_) {
      case Place::start: place_ = Place::tensors; return true;
      case Place::metadata_start: place_ = Place::metadata; return true;
      case Place::entry_start: place_ = Place::entry; return true;
      default: misplaced("an object");
    }
  }

  bool key(std::string& name) override {
    switch (place_) {
      case Place::tensors: begin_entry(name); return true;
      case Place::metadata: begin_metadata(name); return true;
      default: begin_field(name); return true;
    }
  }

  bool end_object() override {
    if (place_ == Place::entry) finish_entry();
    place_ = place_ == Place::tensors ? Place::end : Place::tensors;
    return true;
  }

  bool start_array(std::size_t) override {
    if (place_ != Place::shape_start && place_ != Place::offsets_start) misplaced("a list");
    place_ = place_ == Place::shape_start ? Place::shape : Place::offsets;
    return true;
  }

  bool end_array() override {
    place_ = Place::entry;
    return true;
  }

  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception&) override {
    refuse("has a header that is no JSON from its byte " + std::to_string(position) + " on");
  }

 private:
  enum class Place {
    start,
    tensors,
    metadata_start,
    metadata,
    entry_start,
    entry,
    type,
    shape_start,
    shape,
    offsets_start,
    offsets,
    end
  };

  void begin_entry(std::string& name) {
    if (name == "__metadata__") {
      if (saw_metadata_) refuse("has the key '__metadata__' twice");
      saw_metadata_ = true;
      place_ = Place::metadata_start;
      return;
    }
    if (const auto why = unfit_name(name); !why.empty())
      refuse("has the name " + in_quotes(name) + " that " + std::string(why));
    if (header_.tensors.size() == kMostTensors) refuse("has more than 65,536 tensors");
    entry_ = {};
    entry_.name = std::move(name);
    offsets_.clear();
    saw_type_ = saw_shape_ = saw_offsets_ = false;
    place_ = Place::entry_start;
  }

  void begin_metadata(std::string& name) {
    if (header_.metadata.contains(name)) refuse("has the key " + in_quotes(name) + " twice in __metadata__");
    if (header_.metadata.size() == kMostMetadata) refuse("has more than 4,096 entries in __metadata__");
    metadata_key_ = std::move(name);
  }

  void begin_field(const std::string& name) {
    const auto once = [&](bool& saw, Place place) {
      if (std::exchange(saw, true)) refuse("has the key " + in_quotes(name) + " twice for " + in_quotes(entry_.name));
      place_ = place;
    };
    if (name == "dtype") return once(saw_type_, Place::type);
    if (name == "shape") return once(saw_shape_, Place::shape_start);
    if (name == "data_offsets") return once(saw_offsets_, Place::offsets_start);
    refuse("has the key " + in_quotes(name) + " for " + in_quotes(entry_.name) +
           ", beside dtype, shape and data_offsets");
  }

  void finish_entry() {
    if (!saw_type_ || !saw_shape_ || offsets_.size() != 2)
      refuse("lacks dtype, shape or two data_offsets for " + in_quotes(entry_.name));
    entry_.begin = offsets_[0];
    entry_.end = offsets_[1];
    const auto bytes = byte_size(entry_.type, entry_.shape);
    if (entry_.end < entry_.begin || bytes != entry_.end - entry_.begin)
      refuse("says " + shape_text(entry_.shape) + " of " + std::string(names_of(entry_.type).safetensors) + " for " +
             in_quotes(entry_.name) + ", and bytes " + std::to_string(entry_.begin) + " to " +
             std::to_string(entry_.end));
    header_.tensors.push_back(std::move(entry_));
  }

  [[noreturn]] void misplaced(const std::string& what) const {
    const bool inside = place_ != Place::start && place_ != Place::tensors && place_ != Place::metadata &&
                        place_ != Place::metadata_start;
    refuse("has " + what + " in its header" + (inside ? " in the entry of " + in_quotes(entry_.name) : "") +
           ", where none belongs");
  }

  const std::filesystem::path& path_;
  Place place_ = Place::start;
  SafetensorsHeader header_;
  StoredTensor entry_;
  std::vector<std::uint64_t> offsets_;
  std::string metadata_key_;
  bool saw_metadata_ = false, saw_type_ = false, saw_shape_ = false, saw_offsets_ = false;
};

void check_names_differ(const std::vector<StoredTensor>& tensors, const HeaderListener& listener) {
  std::vector<std::string_view> names;
  names.reserve(tensors.size());
  for (const StoredTensor& tensor : tensors) names.push_back(tensor.name);
  std::ranges::sort(names);
  const auto twice = std::ranges::adjacent_find(names);
  if (twice != names.end()) listener.refuse("has the tensor " + in_quotes(*twice) + " twice");
}

/// The tensors, sorted by their place, must fill the data from its first to its last byte.
void check_coverage(const std::vector<StoredTensor>& tensors, std::uint64_t data_bytes,
                    const HeaderListener& listener) {
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
  HeaderListener listener(path);
  if (!text.starts_with('{')) listener.refuse("has a header that does not begin with '{'");
  if (const auto last = text.find_last_not_of(' '); text[last] != '}')
    listener.refuse("has a header that is padded with something else than spaces");
  if (text.find('\0') != text.npos) listener.refuse("has a zero byte in its header");
  Json::sax_parse(text.begin(), text.end(), &listener);
  SafetensorsHeader header = listener.take();
  std::ranges::sort(header.tensors, [](const StoredTensor& a, const StoredTensor& b) {
    return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);
  });
  check_names_differ(header.tensors, listener);
  check_coverage(header.tensors, data_bytes, listener);
  return header;
}

}  // namespace gradring::train
