// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "train/checkpoint/error.h"
#include "train/checkpoint/safetensors_header.h"

namespace gradring::train {

/// Hears the JSON of a safetensors header value by value, keeps what it describes, and refuses the first value that is out of
/// place. Whether the tensors together fill their file is not its matter.
class SafetensorsListener final : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit SafetensorsListener(const std::filesystem::path& path) : path_(path) {}

  SafetensorsHeader take() { return std::move(header_); }

  [[noreturn]] void refuse(const std::string& found) const {
    throw CheckpointError(path_, found, "this is no sound safetensors file: write it again, or take another");
  }

  bool null() override { misplaced("null"); }
  bool boolean(bool) override { misplaced("true or false"); }
  bool number_float(double, const std::string& text) override { misplaced("the number " + in_quotes(text)); }
  bool number_integer(std::int64_t value) override { misplaced("the number " + std::to_string(value)); }
  bool binary(nlohmann::json::binary_t&) override { misplaced("binary data"); }

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

  static constexpr std::size_t kMostTensors = 65'536;
  static constexpr std::size_t kMostMetadata = 4'096;
  static constexpr std::size_t kMostExtents = 16;
  static constexpr std::uint64_t kLargestInteger = (std::uint64_t{1} << 48) - 1;

  const std::filesystem::path& path_;
  Place place_ = Place::start;
  SafetensorsHeader header_;
  StoredTensor entry_;
  std::vector<std::uint64_t> offsets_;
  std::string metadata_key_;
  bool saw_metadata_ = false, saw_type_ = false, saw_shape_ = false, saw_offsets_ = false;
};

}  // namespace gradring::train
