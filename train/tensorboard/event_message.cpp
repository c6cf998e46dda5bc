// SPDX-License-Identifier: Apache-2.0
#include "train/tensorboard/event_message.h"

#include <bit>
#include <concepts>
#include <cstddef>

namespace gradring::train::tensorboard {
namespace {

enum class WireType : std::uint8_t { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };

/// The fields of a message, in the order in which they are added.
class Fields {
 public:
  Fields& add(int field, std::int64_t value) {
    key(field, WireType::varint);
    varint(static_cast<std::uint64_t>(value));
    return *this;
  }
  Fields& add(int field, double value) {
    key(field, WireType::fixed64);
    fixed(std::bit_cast<std::uint64_t>(value));
    return *this;
  }
  Fields& add(int field, float value) {
    key(field, WireType::fixed32);
    fixed(std::bit_cast<std::uint32_t>(value));
    return *this;
  }
  /// A string, bytes, or a message.
  Fields& add(int field, std::string_view bytes) {
    key(field, WireType::bytes);
    varint(bytes.size());
    text_ += bytes;
    return *this;
  }
  Fields& add(int field, const Fields& message) { return add(field, std::string_view(message.text_)); }
  /// A packed repeated field.
  Fields& add(int field, std::span<const double> values) {
    key(field, WireType::bytes);
    varint(values.size_bytes());
    for (const double value : values) fixed(std::bit_cast<std::uint64_t>(value));
    return *this;
  }

  const std::string& text() const { return text_; }

 private:
  void key(int field, WireType type) {
    varint(static_cast<std::uint64_t>(field) << 3 | static_cast<std::uint64_t>(type));
  }
  /// Seven bits a byte, the lowest first; the highest bit says that more follow.
  void varint(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) text_ += static_cast<char>((value & 0x7F) | 0x80);
    text_ += static_cast<char>(value);
  }
  void fixed(std::unsigned_integral auto value) {
    for (std::size_t i = 0; i < sizeof value; ++i) text_ += static_cast<char>(value >> (8 * i) & 0xFF);
  }

  std::string text_;
};

// Fields of tensorflow.Event.
constexpr int kWallTime = 1, kStep = 2, kFileVersion = 3, kSummary = 5, kSessionLog = 7;
// Of tensorflow.Summary and tensorflow.Summary.Value.
constexpr int kValue = 1, kTag = 1, kSimpleValue = 2, kImage = 4, kHistogram = 5, kTensor = 8, kMetadata = 9;

}  // namespace

void Summary::add_value(std::string_view tag, std::string_view fields) {
  message_ += Fields().add(kValue, Fields().add(kTag, tag).text() + std::string(fields)).text();
}

void Summary::add(std::string_view tag, double scalar) {
  add_value(tag, Fields().add(kSimpleValue, static_cast<float>(scalar)).text());
}

void Summary::add(std::string_view tag, const Histogram& histogram) {
  const Fields message = Fields()
                             .add(1, histogram.min)
                             .add(2, histogram.max)
                             .add(3, histogram.count)
                             .add(4, histogram.sum)
                             .add(5, histogram.sum_of_squares)
                             .add(6, std::span(histogram.limits))
                             .add(7, std::span(histogram.counts));
  add_value(tag, Fields().add(kHistogram, message).text());
}

void Summary::add(std::string_view tag, const EncodedImage& image) {
  const Fields message =
      Fields().add(1, image.height).add(2, image.width).add(3, image.channels).add(4, std::string_view(image.png));
  add_value(tag, Fields().add(kImage, message).text());
}

void Summary::add_text(std::string_view tag, std::string_view markdown) {
  constexpr std::int64_t kString = 7;                                                // DataType.DT_STRING
  const Fields tensor = Fields().add(1, kString).add(2, Fields()).add(8, markdown);  // of no dimensions
  const Fields metadata = Fields().add(1, Fields().add(1, std::string_view("text")));
  add_value(tag, Fields().add(kTensor, tensor).add(kMetadata, metadata).text());
}

std::string file_version_event(double time) {
  return Fields().add(kWallTime, time).add(kFileVersion, std::string_view("brain.Event:2")).text();
}

std::string session_start_event(double time, std::int64_t step) {
  constexpr std::int64_t kStart = 1;  // SessionLog.START
  return Fields().add(kWallTime, time).add(kStep, step).add(kSessionLog, Fields().add(1, kStart)).text();
}

std::string summary_event(double time, std::int64_t step, const Summary& summary) {
  return Fields().add(kWallTime, time).add(kStep, step).add(kSummary, std::string_view(summary.message())).text();
}

}  // namespace gradring::train::tensorboard
