// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

#include "kernels/lib/variant.h"
#include "kernels/ops/gather_batch/mix.h"

namespace gradring::kernels::gather_batch {

/// A batch gathered from a data set on the device: images normalised and converted, and their labels.
/// With s the sample of the visit v = order[*first + row] (draws.h), row in [0, batch), and c = i mod channels:
///   y[row,i] = (x[s,i] / 255 - mean[c]) / std[c]        labels[row] = x_labels[s]
/// With an augmentation, draw = draw_of(augment, seed, *epoch, v, height, width) says which pixel of the image stands
/// for x[s,i], or that y[row,i] is 0 (draws.h). With mixup or cutmix, mix_of(augment, ..., lambdas) says how a second
/// image is mixed in before normalization (mix.h): labels_b[row] is its label, weights_b[row] the weight of that.
/// With `arrivals`, it then advances to the next batch: *first += batch.
///
/// Shapes    x: [samples, elements], x_labels: [samples], order: [positions], mean and std: [channels], y: [batch,
///           elements], labels, labels_b and weights_b: [batch], lambdas and visits: as mix_of, visits [samples];
///           row-major, contiguous, the
///           channels of a pixel side by side: elements % channels == 0. Augmented images have elements / channels /
///           width rows of `width` pixels.
/// Types     x: u8; y: f32, f16 or bf16; order, visits, *first and *epoch: i64; labels, labels_b and lambdas: i32; mean, std
///           and weights_b: f32.
/// Aliasing  nothing that is written overlaps anything. Everything is device memory, *first too: a captured
///           graph that is replayed finds the next batch there. So is *epoch.
/// Order     enqueued on the stream; returns at once.
/// Errors    InvalidArgument if an extent is negative, channels is below 1 or does not divide elements, a pointer is
///           null (none may be missing unless batch is 0; epoch only without an augmentation, the last three only
///           without mixtures), the augmentation does not fit the image (problem_of), or the type is not one of the
///           three. A position outside [0, positions), or a sample outside [0, samples), is found on the device only:
///           that row is NaN, and its labels -1.
/// Numerics  deterministic; each of the three operations rounds to f32, as in data::Normalize, so that the bits are
///           those of the loader's batches; then one rounding to the type.
/// Cost      reads batch * elements and writes batch * elements * size_of(dtype) bytes.
/// Example   tests/kernels/ops/gather_batch_test.cpp
struct Args {
  DType dtype = DType::f32;
  std::int64_t samples = 0;
  std::int64_t positions = 0;
  std::int64_t batch = 0;
  std::int64_t elements = 0;  ///< of one sample: height * width * channels
  std::int64_t channels = 1;
  const std::uint8_t* x = nullptr;
  const std::int32_t* x_labels = nullptr;
  const std::int64_t* order = nullptr;
  std::int64_t* first = nullptr;
  const float* mean = nullptr;
  const float* std = nullptr;
  void* y = nullptr;
  std::int32_t* labels = nullptr;
  Augmentation augment{};
  std::int64_t width = 0;  ///< of an image, in pixels; this and what follows are for augmentation only
  std::uint64_t seed = 0;
  const std::int64_t* epoch = nullptr;
  const std::int32_t* lambdas = nullptr;  ///< this and what follows are for mixup and cutmix only
  std::int32_t* labels_b = nullptr;
  float* weights_b = nullptr;
  const std::int64_t* visits = nullptr;  ///< null: each sample once
  unsigned* arrivals = nullptr;          ///< a word of device memory: 0, and 0 again afterwards; null: *first stays

  /// Of an image, in pixels; width must not be 0.
  std::int64_t height() const { return elements / channels / width; }
};

void check_args(const Args& args);
void reference_run(const Args& args);

using Variant = RunVariant<Args>;

}  // namespace gradring::kernels::gather_batch
