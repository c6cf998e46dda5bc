// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "kernels/lib/async_copy.h"
#include "kernels/lib/byte_address.h"
#include "kernels/lib/reference.h"
#include "kernels/lib/swizzled_tile.cuh"
#include "kernels/ops/conv2d/patches.cuh"
#include "kernels/simt/simt.h"

/// Operands of products, and how the threads of a block copy them to shared memory, k-tile by k-tile, in vectors of
/// kVectorBytes: 16, if the channels are multiples of that, or the 4 of an f32. A thread copies the same few vectors of
/// every k-tile, so its addresses are found once, and then only moved: a vector costs a test of bits, an addition and a
/// cp.async.
///
/// An operand has Element, kKMajor, kBytesOfVector, and Copier<kMN, kThreads>, the part of one thread:
///
///   Copier(operand, first_mn, begin, end)    for M or N = [first_mn, first_mn + kMN) and K = [begin, end)
///   copy_next(operand, to)                   starts the copies of the next kGatheredK of K; `to`: where this thread's
///                                            first vector goes
///
/// What is outside of the operand becomes 0. Copiers of K-major operands begin at K = 0.
namespace gradring::kernels::conv2d {
inline namespace GRADRING_KERNEL_COPY {

/// Of a k-tile.
template <class T>
inline constexpr int kGatheredK = lib::kSwizzledRow<T>;

/// `count` ones from bit `first` on; both are cut to [0, limit), limit < 16.
__device__ inline unsigned ones_between(int first, int end, int limit) {
  const int begin = first < 0 ? 0 : first < limit ? first : limit;
  const int stop = end < begin ? begin : end < limit ? end : limit;
  return (1u << stop) - (1u << begin);
}

/// A convolution's view of images: position (y, x) of a grid [images, grid_height, grid_width] sees kernel_height x
/// kernel_width elements of the source, from (y * step + origin_y, x * step + origin_x) on.
template <class T>
struct PatchView {
  using Element = T;

  const T* data;
  int rows, channels;  ///< positions of the grids of all images
  Divisor grid_height, grid_width;
  int step, origin_y, origin_x;
  int height, width;  ///< of the source
  int kernel_height, kernel_width;

  constexpr int columns() const { return kernel_height * kernel_width * channels; }

  struct Position {
    int image, y, x;  ///< in the grid
  };
  __device__ Position position(int row) const {
    const auto [line, x] = grid_width.divide(row);
    const auto [image, y] = grid_height.divide(line);
    return {image, y, x};
  }
  /// Channel 0 of what the kernel's first position sees; may be outside of the image.
  __device__ lib::ByteAddress start(const Position& at) const {
    const std::int64_t line = std::int64_t{at.image} * height + (at.y * step + origin_y);
    return lib::address_of(data, (line * width + (at.x * step + origin_x)) * channels);
  }
};

/// Patches with a row for each position, K-major: operand A of the forward pass and of dgrad.
template <class T, int kVectorBytes>
struct PatchRows : PatchView<T> {
  static constexpr bool kKMajor = true;
  static constexpr int kBytesOfVector = kVectorBytes;

  template <int kMN, int kThreads>
  class Copier {
   public:
    /// Several lanes copy the same row: one lane finds a row, and the others get it from there. `From`: PatchRows, or
    /// what has the same in another order of rows.
    template <class From>
    __device__ Copier(const From& from, int first_mn, int, int)
        : channel_(Vectors::column()), offset_(Vectors::column() * kBytes) {
      const int lane = static_cast<int>(threadIdx.x % 32u);
      const int row = first_mn + static_cast<int>(threadIdx.x / 32u) * kRowsOfWarp + lane % kRowsOfWarp +
                      lane / kRowsOfWarp * Vectors::kRowsOfPass;
      const typename PatchView<T>::Position at = from.position(row < from.rows ? row : 0);
      const int y = at.y * from.step + from.origin_y;
      const int x = at.x * from.step + from.origin_x;
      const unsigned seen = ones_between(-y, from.height - y, from.kernel_height) << 16 |
                            ones_between(-x, from.width - x, from.kernel_width);
      const auto start = static_cast<std::uint64_t>(from.start(at));
      SIMT_UNROLL_ON_GPU
      for (int pass = 0; pass < kPasses; ++pass) {
        const int owner = pass * kRowsOfWarp + lane / static_cast<int>(Vectors::kVectorsOfRow);
        starts_[pass] = static_cast<lib::ByteAddress>(__shfl_sync(~0u, start, owner));
        seen_[pass] = __shfl_sync(~0u, row < from.rows ? seen : 0u, owner);
      }
    }

    __device__ void copy_next(const PatchRows& from, SharedAddress to) {
      while (channel_ >= from.channels) next_kernel_position(from);
      const unsigned here = down_ < from.kernel_height ? 0x10000u << down_ | 1u << across_ : ~0u;  // no row sees all
      lib::for_each_constant<kPasses>([&](auto pass) {
        Vectors::template copy<pass, 0>(to, lib::pointer_to(starts_[pass] + offset_), (seen_[pass] & here) == here);
      });
      channel_ += kGatheredK<T>;
      offset_ += kGatheredK<T> * kBytes;
    }

   private:
    using Vectors = lib::SwizzledVectors<T, kThreads, kVectorBytes>;
    static constexpr int kBytes = sizeof(T);
    static constexpr int kPasses = kMN / Vectors::kRowsOfPass;
    static constexpr int kRowsOfWarp = Vectors::kRowsOfWarp;
    static_assert(kPasses * kRowsOfWarp <= 32);

    /// Elements of neighbouring kernel positions are neighbours in memory, too, but at the end of a row of the kernel.
    __device__ void next_kernel_position(const PatchRows& from) {
      channel_ -= from.channels;
      if (++across_ < from.kernel_width) return;
      across_ = 0;
      ++down_;
      offset_ += std::int64_t{from.width - from.kernel_width} * from.channels * kBytes;
    }

    lib::ByteAddress starts_[kPasses];
    unsigned seen_[kPasses];  ///< rows of the kernel, and columns in the lower half, that see an element of the source
    int channel_, down_ = 0, across_ = 0;
    std::int64_t offset_;  ///< of the vector from the starts
  };
};

/// w in the forward pass: K-major, a row for each filter.
template <class T, int kVectorBytes>
struct FilterRows {
  using Element = T;
  static constexpr bool kKMajor = true;
  static constexpr int kBytesOfVector = kVectorBytes;

  const T* data;
  int filters, columns;

  template <int kMN, int kThreads>
  class Copier {
   public:
    __device__ Copier(const FilterRows& from, int first_mn, int, int)
        : filters_left_(from.filters - first_mn - Vectors::row()),
          columns_left_(from.columns - Vectors::column()),
          pass_bytes_(std::int64_t{from.columns} * Vectors::kRowsOfPass * kBytes),
          at_(lib::address_of(from.data, std::int64_t{first_mn + Vectors::row()} * from.columns + Vectors::column())) {}

    __device__ void copy_next(const FilterRows&, SharedAddress to) {
      const int rows_left = columns_left_ > 0 ? filters_left_ : 0;
      lib::ByteAddress at = at_;
      lib::for_each_constant<kPasses>([&](auto pass) {
        Vectors::template copy<pass, 0>(to, lib::pointer_to(at), rows_left > pass * Vectors::kRowsOfPass);
        at += pass_bytes_;
      });
      columns_left_ -= kGatheredK<T>;
      at_ += kGatheredK<T> * kBytes;
    }

   private:
    using Vectors = lib::SwizzledVectors<T, kThreads, kVectorBytes>;
    static constexpr int kBytes = sizeof(T);
    static constexpr int kPasses = kMN / Vectors::kRowsOfPass;

    int filters_left_, columns_left_;
    std::int64_t pass_bytes_;
    lib::ByteAddress at_;
  };
};

/// w in dgrad: N-major, a row for each kernel position and filter. The kernel is mirrored: positions go down from
/// `first`, by `across` elements, at the end of a row of `width` of them by `down`.
template <class T, int kVectorBytes>
struct FilterColumns {
  using Element = T;
  static constexpr bool kKMajor = false;
  static constexpr int kBytesOfVector = kVectorBytes;

  const T* data;
  Divisor filters, width;
  int filter_elements, channels;
  int first, across, down, height;

  __device__ std::int64_t offset(int filter, int y, int x) const {
    return std::int64_t{filter} * filter_elements + first - y * (down + (width.value() - 1) * across) - x * across;
  }

  template <int kMN, int kThreads>
  class Copier {
   public:
    __device__ Copier(const FilterColumns& from, int first_mn, int, int)
        : row_(Vectors::row()),
          filter_(Vectors::row()),
          channels_left_(from.channels - first_mn - Vectors::column()),
          pass_bytes_(std::int64_t{from.filter_elements} * Vectors::kRowsOfPass * kBytes),
          columns_(lib::address_of(from.data, first_mn + Vectors::column())),
          at_(columns_ + from.offset(filter_, 0, 0) * kBytes) {}

    __device__ void copy_next(const FilterColumns& from, SharedAddress to) {
      if (from.filters.value() % kGatheredK<T> == 0)
        copy_of_one_position(from, to);
      else
        copy_of_any(from, to);
      row_ += kGatheredK<T>;
    }

   private:
    using Vectors = lib::SwizzledVectors<T, kThreads, kVectorBytes>;
    static constexpr int kBytes = sizeof(T);
    static constexpr int kPasses = kGatheredK<T> / Vectors::kRowsOfPass;
    static constexpr int kVectorsOfRow = static_cast<int>(Vectors::kVectorsOfRow);
    static constexpr int kRowsOfWarp = Vectors::kRowsOfWarp;
    static constexpr std::int64_t kOutside = -16;  // no offset; aligned, as cp.async demands of what is not read, too
    static_assert(kPasses * kRowsOfWarp <= 32);

    template <int kPass>
    __device__ void copy_row(lib::ByteAddress at, int channels_left, SharedAddress to) const {
      lib::for_each_constant<kMN / kGatheredK<T>>([&](auto box) {
        Vectors::template copy<kPass, box>(to, lib::pointer_to(at + box * kGatheredK<T> * kBytes),
                                           channels_left > box * kGatheredK<T>);
      });
    }
    /// A kernel position is several whole k-tiles.
    __device__ void copy_of_one_position(const FilterColumns& from, SharedAddress to) {
      if (filter_ >= from.filters.value()) {
        filter_ -= from.filters.value();
        at_ -= (std::int64_t{from.filters.value()} * from.filter_elements +
                (++x_ < from.width.value() ? from.across : from.down)) *
               kBytes;
        if (x_ == from.width.value()) x_ = 0;
      }
      lib::ByteAddress at = at_;
      lib::for_each_constant<kPasses>([&](auto pass) {
        copy_row<pass>(at, channels_left_, to);
        at += pass_bytes_;
      });
      filter_ += kGatheredK<T>;
      at_ += std::int64_t{kGatheredK<T>} * from.filter_elements * kBytes;
    }
    /// Several lanes copy parts of the same row: one lane finds it, as in PatchRows.
    __device__ void copy_of_any(const FilterColumns& from, SharedAddress to) const {
      const int lane = static_cast<int>(threadIdx.x % 32u);
      const int row = row_ - lane / kVectorsOfRow + lane % kRowsOfWarp + lane / kRowsOfWarp * Vectors::kRowsOfPass;
      const auto [position, filter] = from.filters.divide(row);
      const auto [y, x] = from.width.divide(position);
      const std::int64_t found = y < from.height ? from.offset(filter, y, x) * kBytes : kOutside;
      lib::for_each_constant<kPasses>([&](auto pass) {
        const std::int64_t offset = __shfl_sync(~0u, found, pass * kRowsOfWarp + lane / kVectorsOfRow);
        copy_row<pass>(columns_ + offset, offset == kOutside ? 0 : channels_left_, to);
      });
    }

    int row_, filter_, x_ = 0, channels_left_;
    std::int64_t pass_bytes_;
    lib::ByteAddress columns_, at_;
  };
};

/// dy in wgrad: M-major, a row for each position.
template <class T, int kVectorBytes>
struct GradientColumns {
  using Element = T;
  static constexpr bool kKMajor = false;
  static constexpr int kBytesOfVector = kVectorBytes;

  const T* data;
  int filters;

  template <int kMN, int kThreads>
  class Copier {
   public:
    __device__ Copier(const GradientColumns& from, int first_mn, int begin, int end)
        : filters_left_(from.filters - first_mn - Vectors::column()),
          rows_left_(end - begin - Vectors::row()),
          pass_bytes_(std::int64_t{from.filters} * Vectors::kRowsOfPass * kBytes),
          at_(lib::address_of(from.data,
                              std::int64_t{begin + Vectors::row()} * from.filters + first_mn + Vectors::column())) {}

    __device__ void copy_next(const GradientColumns&, SharedAddress to) {
      lib::for_each_constant<kPasses>([&](auto pass) {
        const int filters_left = rows_left_ > pass * Vectors::kRowsOfPass ? filters_left_ : 0;
        lib::for_each_constant<kMN / kGatheredK<T>>([&](auto box) {
          Vectors::template copy<pass, box>(to, lib::pointer_to(at_ + box * kGatheredK<T> * kBytes),
                                            filters_left > box * kGatheredK<T>);
        });
        at_ += pass_bytes_;
      });
      rows_left_ -= kGatheredK<T>;
    }

   private:
    using Vectors = lib::SwizzledVectors<T, kThreads, kVectorBytes>;
    static constexpr int kBytes = sizeof(T);
    static constexpr int kPasses = kGatheredK<T> / Vectors::kRowsOfPass;

    int filters_left_, rows_left_;
    std::int64_t pass_bytes_;
    lib::ByteAddress at_;
  };
};

/// Patches with a column for each kernel position and channel, N-major: operand B of wgrad.
template <class T, int kVectorBytes>
struct PatchColumns : PatchView<T> {
  static constexpr bool kKMajor = false;
  static constexpr int kBytesOfVector = kVectorBytes;

  Divisor channels_divisor, kernel_width_divisor;
  /// What changes kGatheredK positions further: coordinates and bytes, and their corrections at the end of a row and of
  /// an image.
  struct Walk {
    int across, down;
    int row_end, row_back, image_end, image_back;
    std::int64_t bytes, bytes_at_row_end, bytes_at_image_end;
  } walk;

  template <int kMN, int kThreads>
  class Copier {
   public:
    __device__ Copier(const PatchColumns& from, int first_mn, int begin, int end)
        : rows_left_(end - begin - Vectors::row()) {
      SIMT_UNROLL_ON_GPU
      for (int box = 0; box < kBoxes; ++box) {
        const int column = first_mn + Vectors::column() + box * kGatheredK<T>;
        const auto [kernel_position, channel] = from.channels_divisor.divide(column);
        const auto [y, x] = from.kernel_width_divisor.divide(kernel_position);
        ys_of_kernel_[box] = y < from.kernel_height ? y : kOutside;
        xs_of_kernel_[box] = x;
        offsets_[box] = (std::int64_t{y * from.width + x} * from.channels + channel) * kBytes;
      }
      SIMT_UNROLL_ON_GPU
      for (int pass = 0; pass < kPasses; ++pass) {
        const int row = begin + Vectors::row() + pass * Vectors::kRowsOfPass;
        const typename PatchView<T>::Position at = from.position(row);
        ys_[pass] = at.y * from.step + from.origin_y;
        xs_[pass] = at.x * from.step + from.origin_x;
        starts_[pass] = from.start(at);
      }
    }

    __device__ void copy_next(const PatchColumns& from, SharedAddress to) {
      lib::for_each_constant<kPasses>([&](auto pass) {
        const int y = rows_left_ > pass * Vectors::kRowsOfPass ? ys_[pass] : kOutside;
        lib::for_each_constant<kBoxes>([&](auto box) {
          Vectors::template copy<pass, box>(
              to, lib::pointer_to(starts_[pass] + offsets_[box]),
              are_within(y + ys_of_kernel_[box], from.height, xs_[pass] + xs_of_kernel_[box], from.width));
        });
        step(from, pass);
      });
      rows_left_ -= kGatheredK<T>;
    }

   private:
    using Vectors = lib::SwizzledVectors<T, kThreads, kVectorBytes>;
    static constexpr int kBytes = sizeof(T);
    static constexpr int kPasses = kGatheredK<T> / Vectors::kRowsOfPass;
    static constexpr int kBoxes = kMN / kGatheredK<T>;
    static constexpr int kOutside = 1 << 29;  // added to any coordinate, twice, it is outside

    /// Both coordinates, without a branch.
    __device__ static bool are_within(int y, int height, int x, int width) {
      const unsigned y_within = static_cast<unsigned>(y) < static_cast<unsigned>(height);
      const unsigned x_within = static_cast<unsigned>(x) < static_cast<unsigned>(width);
      return (y_within & x_within) != 0;
    }
    __device__ void step(const PatchColumns& from, int pass) {
      const Walk& by = from.walk;
      xs_[pass] += by.across;
      ys_[pass] += by.down;
      starts_[pass] += by.bytes;
      if (xs_[pass] >= by.row_end) {
        xs_[pass] -= by.row_back;
        ys_[pass] += from.step;
        starts_[pass] += by.bytes_at_row_end;
      }
      if (ys_[pass] >= by.image_end) {
        ys_[pass] -= by.image_back;
        starts_[pass] += by.bytes_at_image_end;
      }
    }

    int rows_left_;  ///< positions, from this thread's first on
    int ys_of_kernel_[kBoxes], xs_of_kernel_[kBoxes];
    std::int64_t offsets_[kBoxes];
    int ys_[kPasses], xs_[kPasses];
    lib::ByteAddress starts_[kPasses];
  };
};

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::conv2d
