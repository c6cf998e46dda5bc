// SPDX-License-Identifier: Apache-2.0
#include "train/view/tensorboard/event_message.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

#include "data/files/protobuf_writer.h"

namespace gradring::train::tensorboard {
namespace {

using Message = data::ProtobufWriter;

// Fields of tensorflow.Event.
constexpr std::uint32_t kWallTime = 1, kStep = 2, kFileVersion = 3, kSummary = 5, kSessionLog = 7;
// Of tensorflow.Summary and tensorflow.Summary.Value.
constexpr std::uint32_t kValue = 1, kTag = 1, kSimpleValue = 2, kImage = 4, kHistogram = 5, kTensor = 8, kMetadata = 9;

}  // namespace

Histogram histogram_of(std::span<const float> values) {
  Histogram histogram{.min = std::numeric_limits<double>::infinity(), .max = -std::numeric_limits<double>::infinity()};
  for (const double value : values) {
    if (!std::isfinite(value)) continue;
    histogram.min = std::min(histogram.min, value);
    histogram.max = std::max(histogram.max, value);
    histogram.count += 1;
    histogram.sum += value;
    histogram.sum_of_squares += value * value;
  }
  if (histogram.count == 0) return {};
  const double range = histogram.max - histogram.min;
  const int buckets = range > 0 ? kHistogramBuckets : 1;
  histogram.counts.resize(static_cast<std::size_t>(buckets));
  for (int i = 1; i < buckets; ++i) histogram.limits.push_back(histogram.min + range * i / buckets);
  histogram.limits.push_back(histogram.max);
  const double buckets_per_unit = range > 0 ? buckets / range : 0;
  for (const double value : values) {
    if (!std::isfinite(value)) continue;
    const auto bucket = static_cast<int>((value - histogram.min) * buckets_per_unit);
    histogram.counts[static_cast<std::size_t>(std::min(bucket, buckets - 1))] += 1;
  }
  return histogram;
}

void Summary::add_value(std::string_view tag, std::string_view fields) {
  message_ += Message().text(kValue, Message().text(kTag, tag).bytes() + std::string(fields)).bytes();
}

void Summary::add(std::string_view tag, double scalar) {
  add_value(tag, Message().real(kSimpleValue, static_cast<float>(scalar)).bytes());
}

void Summary::add(std::string_view tag, const Histogram& histogram) {
  const Message message = Message()
                              .real(1, histogram.min)
                              .real(2, histogram.max)
                              .real(3, histogram.count)
                              .real(4, histogram.sum)
                              .real(5, histogram.sum_of_squares)
                              .reals(6, histogram.limits)
                              .reals(7, histogram.counts);
  add_value(tag, Message().message(kHistogram, message).bytes());
}

void Summary::add(std::string_view tag, const EncodedImage& image) {
  const Message message =
      Message().integer(1, image.height).integer(2, image.width).integer(3, image.channels).text(4, image.png);
  add_value(tag, Message().message(kImage, message).bytes());
}

void Summary::add_text(std::string_view tag, std::string_view markdown) {
  constexpr std::int64_t kString = 7;                                                            // DataType.DT_STRING
  const Message tensor = Message().integer(1, kString).message(2, Message()).text(8, markdown);  // of no dimensions
  const Message metadata = Message().message(1, Message().text(1, "text"));
  add_value(tag, Message().message(kTensor, tensor).message(kMetadata, metadata).bytes());
}

std::string file_version_event(double time) {
  return Message().real(kWallTime, time).text(kFileVersion, "brain.Event:2").bytes();
}

std::string session_start_event(double time, std::int64_t step) {
  constexpr std::int64_t kStart = 1;  // SessionLog.START
  return Message()
      .real(kWallTime, time)
      .integer(kStep, step)
      .message(kSessionLog, Message().integer(1, kStart))
      .bytes();
}

std::string summary_event(double time, std::int64_t step, const Summary& summary) {
  return Message().real(kWallTime, time).integer(kStep, step).text(kSummary, summary.message()).bytes();
}

}  // namespace gradring::train::tensorboard
