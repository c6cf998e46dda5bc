// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "data/augment/augmentation.h"
#include "data/datasets/dataset.h"
#include "data/loader/normalize.h"
#include "kernels/ops/gather_batch/mix.h"

namespace gradring::data {

/// The augmentation of one epoch.
struct EpochAugmentation {
  Augmentation what = {};
  std::uint64_t seed = 0;
  std::int64_t epoch = 0;
  std::span<const std::int32_t> lambdas = {};  ///< lambdas_of(what)
  std::span<const std::int64_t> visits = {};   ///< StepSampler::visits(epoch), from which mixtures take partners
};

/// The label of an image that may be a mixture of two.
struct MixedLabel {
  int label = 0;
  int label_b = 0;
  float weight_b = 0;
};

/// Augments and normalizes samples of one epoch, one after the other, with the bits of the kernel gather_batch.
///
/// Threads   one caller; it holds the memory of three images.
/// Errors    InvalidArgument as check_fits, or if the table of lambdas is not that of the augmentation.
/// Cost      draws 10 rounds of Philox a sample and purpose; copies each pixel once more. A mixture reads two images.
class Augmenter {
 public:
  /// All three must outlive it.
  Augmenter(const Dataset& dataset, const Normalize& normalize, const EpochAugmentation& augmentation);

  /// Asks for the pixels of a visit (kernels/ops/gather_batch/draws.h) that is to be written soon: shuffled rows of a
  /// dataset larger than the caches are cache misses.
  void prefetch(std::int64_t visit) const;
  /// Errors    InvalidArgument for a sample outside the dataset; what the dataset throws.
  MixedLabel write(std::int64_t visit, std::span<float> image);

 private:
  using Draw = kernels::gather_batch::Draw;
  using Mix = kernels::gather_batch::Mix;
  using Pixels = std::span<const std::uint8_t>;

  Draw draw_of(std::int64_t visit) const;
  Mix mix_of(std::int64_t visit) const;
  /// The pixels after crop and flip: `pixels` itself if nothing applies, else in `memory`.
  Pixels shown(const Draw& draw, Pixels pixels, std::vector<std::uint8_t>& memory);
  void crop(const Draw& draw, Pixels pixels, std::uint8_t* to) const;
  void crop_resized(const Draw& draw, Pixels pixels, std::uint8_t* to);
  void write_mixture(const Mix& mix, Pixels own, std::span<float> image);
  void paste(const Mix& mix, Pixels own, Pixels other);
  void cut_out(const Draw& draw, std::span<float> image) const;

  const Dataset& dataset_;
  const Normalize& normalize_;
  EpochAugmentation augmentation_;
  int height_, width_, channels_;
  std::vector<std::uint8_t> own_, other_;
  std::vector<float> mixed_;
  std::vector<kernels::gather_batch::Taps> columns_;
};

}  // namespace gradring::data
