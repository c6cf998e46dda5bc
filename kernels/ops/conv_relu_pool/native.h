// SPDX-License-Identifier: Apache-2.0
// What the passes of the native variant share; not for others.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "kernels/lib/native_vector.h"
#include "kernels/ops/conv_relu_pool/conv_relu_pool.h"

namespace gradring::kernels::conv_relu_pool {
inline namespace GRADRING_KERNEL_COPY {
namespace native {

/// Output channels that are computed together: two vectors.
inline constexpr int kBlock = 2 * lib::kNativeLanes;
/// Most workers that a batch is divided among; each has scratch memory of its own.
inline constexpr int kMostWorkers = 16;
/// Samples whose gradients are worked on together: as many as a first-level cache holds of the ConvNet's second layer.
inline constexpr int kGroup = 2;

constexpr int round_up(int value, int step) { return (value + step - 1) / step * step; }

/// A geometry in the form that the loops need. A row of the kernel lies over `run` neighbouring inputs, for NHWC and
/// OHWI agree in the order of columns and channels.
struct Layout {
  Geometry g;
  int channels;      // of x
  int outputs;       // channels of y
  int blocks;        // of kBlock outputs
  int rows;          // of the kernel
  int run;           // inputs under one of them
  int padded_run;    // whole vectors
  int height;        // of a sample with its padding around it
  int line;          // elements of one of its rows
  int cells_across;  // windows of a row of y
  int cells;         // windows of a sample
  int code_bytes;    // of the codes of a cell
  /// Offsets of the elements of a window from its first.
  std::array<std::int32_t, kMostWindow * kMostWindow> window_offsets{};
  bool few_taps;  // so few inputs under a kernel row that vectors run along the output channels instead

  explicit Layout(const Geometry& geometry)
      : g(geometry),
        channels(static_cast<int>(g.conv.in_channels)),
        outputs(static_cast<int>(g.conv.out_channels)),
        blocks(round_up(outputs, kBlock) / kBlock),
        rows(static_cast<int>(g.conv.kernel_height)),
        run(static_cast<int>(g.conv.kernel_width) * channels),
        padded_run(round_up(run, lib::kNativeLanes)),
        height(static_cast<int>(g.conv.in_height + 2 * g.conv.padding)),
        line(static_cast<int>(g.conv.in_width + 2 * g.conv.padding) * channels),
        cells_across(static_cast<int>(g.out_width())),
        cells(static_cast<int>(g.out_height() * g.out_width())),
        code_bytes(static_cast<int>(g.code_bytes_of_position())),
        few_taps(run > 0 && run < lib::kNativeLanes) {
    for (int i = 0; i < window_elements(); ++i)
      window_offsets[static_cast<std::size_t>(i)] = (i / window() * line + i % window() * channels) * stride();
  }

  bool pads() const { return g.conv.padding > 0; }
  int window_elements() const { return window() * window(); }
  int window() const { return static_cast<int>(g.window); }
  int stride() const { return static_cast<int>(g.conv.stride); }
  /// From one output of the convolution to the next one in its row, counted in inputs.
  int step() const { return stride() * channels; }
  std::size_t sample_elements() const {
    return static_cast<std::size_t>(g.conv.in_height * g.conv.in_width * g.conv.in_channels);
  }
  /// Of a sample in memory of its own.
  std::size_t copy_elements() const {
    return round_up_floats(static_cast<std::size_t>(height) * static_cast<std::size_t>(line) + lib::kNativeLanes);
  }
  /// Where the window of cell `cell` begins in a padded sample.
  int cell_begin(int cell) const {
    return ((cell / cells_across) * line + (cell % cells_across) * channels) * window() * stride();
  }
  std::size_t packed_elements() const {
    return static_cast<std::size_t>(blocks) * static_cast<std::size_t>(rows * run + 1) * kBlock;
  }
  std::size_t forward_scratch() const {
    return round_up_floats(static_cast<std::size_t>(window() * cells_across * window()) * kBlock) + copy_elements();
  }
  /// Of db, which follows dw.
  std::size_t bias_elements() const { return static_cast<std::size_t>(blocks) * kBlock; }
  std::size_t gradient_elements() const { return bias_elements() * static_cast<std::size_t>(rows * padded_run + 1); }
  /// Entries of the lists of one group of samples, for each output channel.
  std::size_t list_elements() const { return static_cast<std::size_t>(kGroup) * static_cast<std::size_t>(cells); }
  std::size_t backward_scratch() const {
    return gradient_elements() + 2 * kGroup * copy_elements() +
           round_up_floats(static_cast<std::size_t>(outputs) * (2 * list_elements() + 1));
  }

  static std::size_t round_up_floats(std::size_t elements) { return (elements + 15) / 16 * 16; }
};

/// Copies a sample into the middle of `padded`, whose margins (and kNativeLanes elements past the end) are zeros
/// already.
void pad(const Layout& layout, const float* sample, float* padded);
/// And back, without the margins.
void unpad(const Layout& layout, const float* padded, float* sample);

/// The passes over samples [begin, end), by one worker. Pointers are those of whole arrays; `scratch` is the worker's
/// own.
struct Forward {
  const float* x;
  const float* packed;  // [blocks][rows * run + 1][kBlock]: biases first, zeros for channels that do not exist
  float* y;
  std::uint8_t* codes;
};
void forward_samples(const Layout& layout, const Forward& pass, std::int64_t begin, std::int64_t end, float* scratch);

struct Backward {
  const float* x;
  const float* w;  // [outputs][rows][padded_run]
  const float* dy;
  const std::uint8_t* codes;
  float* dx;  // or null
};
/// Leaves this worker's partial dw in front of `scratch` ([outputs][rows][padded_run], but [rows][run][blocks *
/// kBlock] where the layout has few taps), and of db after it, at the end of gradient_elements().
void backward_samples(const Layout& layout, const Backward& pass, std::int64_t begin, std::int64_t end, float* scratch);

}  // namespace native
}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::conv_relu_pool
