// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gradring::train::tensorboard {

// The messages of TensorBoard's event files, in protobuf's encoding: tensorflow.Event and tensorflow.Summary, of which
// only the fields that are written here. Source: tensorboard/compat/proto/{event,summary,tensor}.proto.

/// The distribution of finite values, as tensorflow.HistogramProto has it.
struct Histogram {
  double min = 0;
  double max = 0;
  double count = 0;
  double sum = 0;
  double sum_of_squares = 0;
  std::vector<double> limits{};  ///< upper limit of each bucket; the lowest one begins at min
  std::vector<double> counts{};  ///< values of each bucket
};

/// Buckets of a histogram.
inline constexpr int kHistogramBuckets = 64;

/// Counts values in kHistogramBuckets buckets of equal width from the least value to the greatest, or in one bucket if
/// all are equal. Leaves out NaN and infinity. A value on a limit belongs to the bucket above it, and the greatest to
/// the last bucket, but for the rounding of its position.
///
/// Cost      reads the values twice.
Histogram histogram_of(std::span<const float> values);

/// An image as a PNG file.
struct EncodedImage {
  std::int64_t height = 0;
  std::int64_t width = 0;
  std::int64_t channels = 1;  ///< 1: grey; 3: red, green, blue
  std::string png{};
};

/// Values of one step, each with a tag; TensorBoard groups tags by what precedes their first '/'.
class Summary {
 public:
  void add(std::string_view tag, double scalar);  ///< stored as a float
  void add(std::string_view tag, const Histogram& histogram);
  void add(std::string_view tag, const EncodedImage& image);
  /// Markdown, for the text plugin.
  void add_text(std::string_view tag, std::string_view markdown);

  bool empty() const { return message_.empty(); }
  const std::string& message() const { return message_; }

 private:
  void add_value(std::string_view tag, std::string_view fields);

  std::string message_;
};

// Events, each the data of a record. `time` is in seconds since 1970.

/// The first event of a file.
std::string file_version_event(double time);
/// The start of a session: readers discard earlier values of `step` and later ones.
std::string session_start_event(double time, std::int64_t step);
std::string summary_event(double time, std::int64_t step, const Summary& summary);

}  // namespace gradring::train::tensorboard
