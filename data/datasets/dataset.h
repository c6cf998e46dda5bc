// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/files/sha256.h"
#include "kernels/runtime/shape.h"

namespace gradring::data {

enum class Split : std::uint8_t { train, test };

constexpr std::string_view name_of(Split split) { return split == Split::train ? "train" : "test"; }

/// One image and its class. The pixels belong to the dataset.
struct Sample {
  std::span<const std::uint8_t> pixels;
  int label = 0;
};

/// The names "0", "1", ... of classes that have no others.
std::vector<std::string> numbered_classes(int classes);

/// A fixed list of labelled images of one shape.
///
/// Shapes    shape() is that of one sample: height, width, channels; pixels are stored in that order.
/// Threads   every member function may be called from any thread.
/// Errors    InvalidArgument if an index is outside 0 .. size() - 1.
class Dataset {
 public:
  virtual ~Dataset() = default;
  /// "mnist", "digits".
  virtual std::string_view name() const = 0;
  virtual std::int64_t size() const = 0;
  virtual kernels::Shape shape() const = 0;
  /// Labels are 0 .. classes() - 1.
  virtual int classes() const = 0;
  /// Of each class, in the order of the labels. Valid as long as the dataset.
  virtual std::span<const std::string> class_names() const = 0;
  /// Valid as long as the dataset.
  virtual std::span<const std::uint8_t> pixels(std::int64_t index) const = 0;
  virtual int label(std::int64_t index) const = 0;
  /// What stands for its samples where that is known without reading the pixels: equal for equal files.
  virtual std::optional<Sha256> known_hash() const { return std::nullopt; }

  Sample get(std::int64_t index) const { return {pixels(index), label(index)}; }
};

/// A dataset in memory, one byte per pixel and channel.
class InMemoryDataset final : public Dataset {
 public:
  struct Contents {
    std::string name;
    kernels::Shape shape;  ///< of one sample
    int classes = 0;
    std::vector<std::uint8_t> pixels;  ///< sample after sample
    std::vector<std::int32_t> labels;
    std::vector<std::string> class_names = {};  ///< empty: numbered_classes()
  };

  /// Errors    InvalidArgument if pixels, labels, names and shape do not fit together, or a label is not from 0
  ///           to `classes` - 1.
  explicit InMemoryDataset(Contents contents);

  std::string_view name() const override { return contents_.name; }
  std::int64_t size() const override { return static_cast<std::int64_t>(contents_.labels.size()); }
  kernels::Shape shape() const override { return contents_.shape; }
  int classes() const override { return contents_.classes; }
  std::span<const std::string> class_names() const override { return contents_.class_names; }
  std::span<const std::uint8_t> pixels(std::int64_t index) const override;
  int label(std::int64_t index) const override;

 private:
  void check_index(std::int64_t index) const;

  Contents contents_;
  std::size_t sample_bytes_ = 0;
};

/// How many samples each class has, by label.
///
/// Cost      reads every label, and no pixel.
std::vector<std::int64_t> samples_of_class(const Dataset& dataset);

struct DatasetStatistics {
  std::vector<std::int64_t> samples_of_class;
  std::vector<double> mean = {};  ///< per channel, of pixels scaled to [0, 1]
  std::vector<double> std = {};   ///< per channel, over all pixels (not a sample's estimate)
};

/// Class counts, mean and standard deviation of a dataset.
///
/// Errors    InvalidArgument if it is empty.
/// Numerics  sums are integers, so exact in any order.
/// Cost      reads every pixel once.
DatasetStatistics statistics_of(const Dataset& dataset);

/// The SHA-256 of all samples in their order, labels and pixels as they are decoded, of their shape and the number of
/// classes. File format, compression and path of the files do not count.
///
/// Of a dataset with a known_hash, that; of a part of it, of that and of the indices.
///
/// Cost      reads every pixel once, at the speed of SHA-256: less than opening the files; none where it is known.
Sha256 content_hash(const Dataset& dataset);

}  // namespace gradring::data
