// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <type_traits>

#include "kernels/lib/element.h"
#include "kernels/lib/half_pairs.h"
#include "kernels/lib/warpgroup_mma.h"
#include "kernels/ops/conv2d/gathered_products.h"

/// What the kernels of gathered products share, by whichever instruction they multiply: the stages of operands in
/// shared memory, how sums become C, and the passes.
///
/// A multiplier is the type of a block's tile of C:
///
///   kThreads, kRows, kColumns
///   Sums, kRun                              a thread's part of the tile; runs of so many neighbouring columns
///   for_each_run(sums, visit)               visit(row, column, first of its sums)
///   multiply(sums, stages, product, k)      adds the product over k indices of K; returns when all is added
namespace gradring::kernels::conv2d {
inline namespace GRADRING_KERNEL_COPY {

inline constexpr int kGatheredStages = 3;

template <class T>
constexpr int k_tiles_of(int k) {
  return (k + kGatheredK<T> - 1) / kGatheredK<T>;
}

/// The k-tiles of a block's operands in shared memory, and this thread's part in filling them, in their order.
template <class Tile, class P>
class GatheredStages {
 public:
  using A = decltype(P::a);
  using B = decltype(P::b);
  using T = typename A::Element;
  using TileA = lib::SwizzledTile<T, Tile::kRows, A::kKMajor>;
  using TileB = lib::SwizzledTile<T, Tile::kColumns, B::kKMajor>;
  struct Stage {
    TileA a;
    TileB b;
  };
  static constexpr int kStageBytes = sizeof(Stage);
  static constexpr std::size_t kSharedBytes = kGatheredStages * sizeof(Stage) + simt::kSwizzlePatternBytes - 1;

  __device__ GatheredStages(unsigned char* shared, const P& product, int first_row, int first_column,
                            const lib::KOfBlock& k)
      : stages_(shared),
        first_a_(shared + Vectors<A>::offset_bytes()),
        first_b_(shared + sizeof(TileA) + Vectors<B>::offset_bytes()),
        a_(product.a, first_row, k.begin, k.end),
        b_(product.b, first_column, k.begin, k.end),
        left_(k_tiles_of<T>(k.end - k.begin)) {
    for (int i = 0; i < kGatheredStages - 1; ++i) {
      start_next(product, i * kStageBytes);
    }
  }

  /// Until the copies of the next k-tile by this thread have landed.
  __device__ void wait() const { async_wait<kGatheredStages - 2>(); }

  /// Starts the copies of one more k-tile, to the stage before this one; past the last one, of nothing.
  __device__ void start_next(const P& product) {
    start_next(product, offset_ == 0 ? (kGatheredStages - 1) * kStageBytes : offset_ - kStageBytes);
  }
  __device__ const Stage& stage() const { return *reinterpret_cast<const Stage*>(stages_ + offset_); }
  /// Of the stage, from the first one.
  __device__ int offset_bytes() const { return offset_; }
  __device__ void release() { offset_ = offset_ == (kGatheredStages - 1) * kStageBytes ? 0 : offset_ + kStageBytes; }

 private:
  template <class Operand>
  using Vectors = lib::SwizzledVectors<T, Tile::kThreads, Operand::kBytesOfVector>;

  __device__ void start_next(const P& product, int offset) {
    if (left_-- > 0) {
      a_.copy_next(product.a, first_a_ + offset);
      b_.copy_next(product.b, first_b_ + offset);
    }
    async_commit();
  }

  unsigned char* stages_;
  SharedAddress first_a_, first_b_;  ///< this thread's first vectors
  typename A::template Copier<Tile::kRows, Tile::kThreads> a_;
  typename B::template Copier<Tile::kColumns, Tile::kThreads> b_;
  int left_, offset_ = 0;
};

/// Neighbouring elements, one access.
template <class C, int kCount>
struct alignas(kCount * sizeof(C)) Run {
  C elements[kCount];
};

/// Sums begin as the bias of their columns: before the product.
template <class Multiplier, class C>
__device__ void start_from_bias(typename Multiplier::Sums& sums, const C* bias, int columns) {
  using Biases = Run<C, Multiplier::kRun>;
  Multiplier::for_each_run(sums, [&](int, int column, float* run) {
    if (column >= columns) return;
    const auto biases = simt::load_as<Biases>(bias + column);
    SIMT_UNROLL_ON_GPU
    for (int i = 0; i < Multiplier::kRun; ++i) run[i] = lib::to_f32(biases.elements[i]);
  });
}

/// Rounds sums into a tile of C in shared memory, in swizzled rows of 128 bytes.
template <class Multiplier, class C, bool kRelu>
__device__ void round_to(typename Multiplier::Sums& sums, unsigned char* tile) {
  static_assert(Multiplier::kRun == 2);
  constexpr int kBox = lib::kSwizzledRow<C>;
  Multiplier::for_each_run(sums, [&](int row, int column, const float* run) {
    const auto byte = static_cast<unsigned>(column % kBox) * unsigned{sizeof(C)};
    const unsigned swizzled = byte ^ static_cast<unsigned>(row) % 8 * 16;
    simt::store_as(tile + (column / kBox * Multiplier::kRows + row) * simt::kSwizzledRowBytes + swizzled,
                   kRelu ? lib::relu_pair<C>(run[0], run[1]) : lib::pair_of<C>(run[0], run[1]));
  });
}

/// Writes 16-bit sums as whole vectors: through shared memory, where the stages were.
template <class Multiplier, class P, class C, class E>
__device__ void store_vectors(typename Multiplier::Sums& sums, unsigned char* shared, const P& product, C* c,
                              const E& epilogue, int first_row, int first_column) {
  using Vectors = lib::SwizzledVectors<C, Multiplier::kThreads, 16>;
  constexpr int kRowBytes = simt::kSwizzledRowBytes;
  constexpr int kBoxBytes = Multiplier::kRows * kRowBytes;
  constexpr int kBox = lib::kSwizzledRow<C>;
  if (epilogue.relu)
    round_to<Multiplier, C, true>(sums, shared);
  else
    round_to<Multiplier, C, false>(sums, shared);
  __syncthreads();  // the tile of C is complete
  const unsigned char* const from = shared + Vectors::offset_bytes();
  const int columns_left = product.columns - first_column - Vectors::column();
  SIMT_UNROLL_ON_GPU
  for (int pass = 0; pass < Multiplier::kRows / Vectors::kRowsOfPass; ++pass) {
    const int row = first_row + Vectors::row() + pass * Vectors::kRowsOfPass;
    if (row >= product.rows) return;
    C* const line = c + product.to.offset(row) + first_column + Vectors::column();
    SIMT_UNROLL_ON_GPU
    for (int box = 0; box < Multiplier::kColumns / kBox; ++box)
      if (columns_left > box * kBox)
        simt::store_as(line + box * kBox,
                       simt::load_as<uint4>(from + pass * Vectors::kRowsOfPass * kRowBytes + box * kBoxBytes));
  }
}

/// Writes f32 sums as they are held.
template <class Multiplier, class P, class E>
__device__ void store_runs(typename Multiplier::Sums& sums, const P& product, float* c, const E& epilogue,
                           int first_row, int first_column) {
  constexpr int kRun = Multiplier::kRun;
  Multiplier::for_each_run(sums, [&](int tile_row, int tile_column, const float* run) {
    const int row = first_row + tile_row;
    const int column = first_column + tile_column;
    if (row >= product.rows || column >= product.columns) return;
    Run<float, kRun> values;
    SIMT_UNROLL_ON_GPU
    for (int i = 0; i < kRun; ++i) values.elements[i] = epilogue.clamped(run[i]);
    simt::store_as(c + product.to.offset(row) + column, values);
  });
}

/// This block's tile of C. `epilogue`: NoEpilogue or Epilogue<C>, whose bias is aligned to kRun elements.
template <class Multiplier, class P, class C, class E>
__device__ void compute_tile(const P& product, C* c, const E& epilogue, const lib::KOfBlock& k) {
  SIMT_DYNAMIC_SHARED(unsigned char, memory);
  unsigned char* const shared = lib::align_shared<simt::kSwizzlePatternBytes>(memory);
  const int first_row = static_cast<int>(blockIdx.x) * Multiplier::kRows;
  const int first_column = static_cast<int>(blockIdx.y) * Multiplier::kColumns;
  if (first_row >= product.rows) return;  // of a product with fewer rows than others of the launch
  GatheredStages<Multiplier, P> stages(shared, product, first_row, first_column, k);
  typename Multiplier::Sums sums;
  if constexpr (!std::is_same_v<E, NoEpilogue>)
    if (epilogue.bias) start_from_bias<Multiplier>(sums, epilogue.bias + first_column, product.columns - first_column);
  Multiplier::multiply(sums, stages, product, k.end - k.begin);
  if constexpr (std::is_same_v<C, float>) {
    store_runs<Multiplier>(sums, product, c, epilogue, first_row, first_column);
  } else {
    async_wait<0>();
    __syncthreads();  // no thread still reads the stages
    store_vectors<Multiplier>(sums, shared, product, c, epilogue, first_row, first_column);
  }
}

/// Products of one launch, one for each blockIdx.z.
template <class P>
struct Products {
  static constexpr int kMost = 4;
  P of[kMost] = {};
  int count = 0;

  int rows() const { return std::max({of[0].rows, of[1].rows, of[2].rows, of[3].rows}); }
};

template <class Multiplier, class P>
simt::Config gathered_config(dim3 grid) {
  return {
      .grid = grid, .block = dim3(Multiplier::kThreads), .shared_bytes = GatheredStages<Multiplier, P>::kSharedBytes};
}

inline constexpr std::int64_t kMultiprocessors = 132;  // of a large GPU

/// The tiles of C from which tensor cores choose; Tile<rows, columns> is a multiplier.
template <template <int, int> class Tile>
struct TensorTiles {
  /// The largest of which there is one for each multiprocessor, else the smallest: large ones copy less.
  template <int, class Visit>
  static void with_tile(std::int64_t rows, std::int64_t columns, int products, Visit visit) {
    const auto fills = [&](std::int64_t tile_rows, std::int64_t tile_columns) {
      return lib::ceil_div(rows, tile_rows) * lib::ceil_div(columns, tile_columns) * products >= kMultiprocessors;
    };
    if (columns > 64 && fills(128, 128))
      visit(lib::Element<Tile<128, 128>>());
    else if (fills(128, 64))
      visit(lib::Element<Tile<128, 64>>());
    else
      visit(lib::Element<Tile<64, 64>>());
  }

  template <int, class Visit>
  static void with_wgrad_tile(const Geometry& g, Visit visit) {
    if (g.filter_elements() <= 64)
      visit(lib::Element<Tile<64, 64>>());
    else if (g.out_channels <= 64)
      visit(lib::Element<Tile<64, 128>>());
    else
      visit(lib::Element<Tile<128, 128>>());
  }
};

/// The passes of a variant. What variants differ in:
///   Engine::with_type(dtype, visit)               the types that it knows
///   Engine::Tiles                                 with_tile, with_wgrad_tile<kVectorBytes>: the tiles that it chooses
///   Engine::run<Tile>(stream, grid, products, c, epilogue)
///   Engine::run_slices<Tile>(stream, grid, product, slices, k_of_slice)
///   Engine::other()                               the variant that computes what is not gathered
template <class Engine>
struct GatheredPasses {
  static void forward(Stream& stream, const ForwardArgs& args) {
    check_args(args);
    const Geometry& g = args.geometry;
    check_one_group(g);
    if (g.out_elements() == 0) return;
    Engine::with_type(args.dtype, [&]<class T>(lib::Element<T>) {
      const bool has_pairs_of_biases = reinterpret_cast<std::uintptr_t>(args.bias) % (2 * sizeof(T)) == 0;
      const bool gathered = has_pairs_of_biases &&
                            with_vectors<T>(g, {args.x, args.w, args.y}, [&]<int kBytes>(lib::Element<int[kBytes]>) {
                              const auto product = gathered_forward<T, kBytes>(args);
                              run<T, kBytes>(stream, Products<std::remove_const_t<decltype(product)>>{{product}, 1},
                                             static_cast<T*>(args.y), Epilogue<T>(args));
                            });
      if (!gathered) Engine::other().forward(stream, args);
    });
  }

  static void dgrad(Stream& stream, const DgradArgs& args) {
    check_args(args);
    const Geometry& g = args.geometry;
    check_one_group(g);
    if (g.in_elements() == 0) return;
    Engine::with_type(args.dtype, [&]<class T>(lib::Element<T>) {
      const bool gathered = with_vectors<T>(g, {args.dy, args.w, args.dx}, [&]<int kBytes>(lib::Element<int[kBytes]>) {
        Products<DgradProduct<T, kBytes>> products;
        const auto run_all = [&] {
          if (products.count > 0) run<T, kBytes>(stream, products, static_cast<T*>(args.dx), NoEpilogue{});
          products = {};
        };
        for (std::int64_t y = 0; y < g.stride; ++y)
          for (std::int64_t x = 0; x < g.stride; ++x) {
            const auto product = gathered_dgrad<T, kBytes>(args, y, x);
            if (product.rows == 0) continue;
            products.of[products.count++] = product;
            if (products.count == products.kMost) run_all();
          }
        run_all();
      });
      if (!gathered) Engine::other().dgrad(stream, args);
    });
  }

  static void wgrad(Stream& stream, const WgradArgs& args) {
    check_args(args);
    const Geometry& g = args.geometry;
    check_one_group(g);
    if (g.weight_elements() == 0) return;
    lib::check_pointer("conv2d wgrad", "workspace", args.workspace);
    auto* const partial_sums = static_cast<float*>(args.workspace);
    Engine::with_type(args.dtype, [&]<class T>(lib::Element<T>) {
      const bool gathered =
          with_vectors<T>(g, {args.x, args.dy, args.workspace}, [&]<int kBytes>(lib::Element<int[kBytes]>) {
            const auto product = gathered_wgrad<T, kBytes>(args);
            Engine::Tiles::template with_wgrad_tile<kBytes>(g, [&]<class Tile>(lib::Element<Tile>) {
              constexpr TileShape kShape = shape_of<Tile, T>();
              const int slices = lib::slices_of(lib::ceil_div(product.k, kShape.k), wanted_slices<Tile>(g), kMinKTiles);
              Engine::template run_slices<Tile>(stream, grid_of(product.rows, product.columns, kShape, slices), product,
                                                partial_sums, k_of_slice(product.k, kShape, slices));
              lib::sum_slices(stream, partial_sums, slices, g.weight_elements(), args.dw, args.accumulate,
                              args.partial_sums);
            });
          });
      if (!gathered) Engine::other().wgrad(stream, args);
    });
  }

  /// Enough for any type, width of vectors, and for the other variant.
  static std::size_t workspace_bytes(const Geometry& g) {
    std::size_t bytes = Engine::other().workspace_bytes(g);
    const auto take = [&]<class Tile>(lib::Element<Tile>) {
      const std::int64_t slices =
          lib::max_slices(lib::ceil_div(g.batch * g.out_height() * g.out_width(), kGatheredK<typename Engine::Widest>),
                          wanted_slices<Tile>(g), kMinKTiles);
      bytes = std::max(bytes, static_cast<std::size_t>(slices * g.weight_elements()) * sizeof(float));
    };
    Engine::Tiles::template with_wgrad_tile<16>(g, take);
    Engine::Tiles::template with_wgrad_tile<4>(g, take);
    return bytes;
  }

 private:
  static constexpr std::int64_t kWarpsOfMultiprocessor = 8;  // that split-K wants

  template <class Tile, class T>
  static constexpr TileShape shape_of() {
    return {.rows = Tile::kRows, .columns = Tile::kColumns, .k = kGatheredK<T>};
  }

  /// visit(Element<int[bytes]>) for the vectors that the arrays have; false, without a call, if the variant has none.
  template <class T, class Visit>
  static bool with_vectors(const Geometry& g, std::initializer_list<const void*> arrays, Visit visit) {
    const int bytes = vector_bytes<T>(g, arrays);
    if (!is_gathered(g)) return false;
    if (bytes == 16) {
      visit(lib::Element<int[16]>());
      return true;
    }
    if constexpr (sizeof(T) == 4) {
      visit(lib::Element<int[4]>());
      return true;
    }
    return false;
  }

  template <class T, int kBytes, class C, class P, class E>
  static void run(Stream& stream, const Products<P>& products, C* c, const E& epilogue) {
    const int rows = products.rows();
    const int columns = products.of[0].columns;
    Engine::Tiles::template with_tile<kBytes>(rows, columns, products.count, [&]<class Tile>(lib::Element<Tile>) {
      Engine::template run<Tile>(stream, grid_of(rows, columns, shape_of<Tile, T>(), products.count), products, c,
                                 epilogue);
    });
  }

  template <class Tile>
  static std::int64_t wanted_slices(const Geometry& g) {
    const std::int64_t tiles =
        lib::ceil_div(g.out_channels, Tile::kRows) * lib::ceil_div(g.filter_elements(), Tile::kColumns);
    return kMultiprocessors * kWarpsOfMultiprocessor / (Tile::kThreads / 32) / std::max<std::int64_t>(1, tiles);
  }
};

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::conv2d
