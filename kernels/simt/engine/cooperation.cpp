// SPDX-License-Identifier: Apache-2.0
#include "kernels/simt/engine/cooperation.h"

#include <algorithm>
#include <bit>
#include <string>

#include "kernels/simt/engine/block.h"
#include "kernels/simt/engine/error.h"
#include "kernels/simt/engine/tensor_layout.h"

namespace gradring::simt::detail {
namespace {

Block& block_for(const char* what, Site site) {
  Block* block = current_block();
  if (block) return *block;
  throw Error(std::string(what) + " in a kernel launched flat, at " + site.file + ":" + std::to_string(site.line) +
                  ": use launch, not launch_flat",
              site);
}

template <class Visit>
void for_each_lane(std::uint32_t mask, Visit visit) {
  for (unsigned lane = 0; lane < 32; ++lane)
    if (mask >> lane & 1u) visit(lane);
}

template <class T>
T& data_of(Deposit& deposit) {
  return *static_cast<T*>(deposit.data);
}

constexpr std::uint32_t kFullWarp = ~0u;

void check_full_warp(const Deposits& deposits, std::uint32_t lanes, Block& block) {
  if (lanes == kFullWarp) return;
  const Fiber& one = *deposits[static_cast<unsigned>(std::countr_zero(lanes))].fiber;
  block.fail(one.site, "%s needs a full warp: %s", one.waits_in, describe(one).text);
}

/// A tile of rows of `width` numbers, in which lane `lane` holds `count` that begin at `held`. Volatile, so that the
/// copy becomes neither std::copy_n, of which the linker might take another file's instrumented copy, nor memcpy, which
/// TSan watches: either would look like a race between the lanes.
template <class PositionOf>
void gather_tile(const volatile float* held, int lane, unsigned count, unsigned width, PositionOf position_of,
                 float* tile) {
  for (unsigned i = 0; i < count; ++i) {
    const Position position = position_of(lane, static_cast<int>(i));
    tile[static_cast<unsigned>(position.row) * width + static_cast<unsigned>(position.column)] = held[i];
  }
}
template <class PositionOf>
void scatter_tile(const float* tile, int lane, unsigned count, unsigned width, PositionOf position_of,
                  volatile float* held) {
  for (unsigned i = 0; i < count; ++i) {
    const Position position = position_of(lane, static_cast<int>(i));
    held[i] = tile[static_cast<unsigned>(position.row) * width + static_cast<unsigned>(position.column)];
  }
}

/// c += a b, in ascending order of K; position_in_x(lane, i) is the position in x of the i-th number that a lane holds.
template <class PositionInA, class PositionInB, class PositionInC>
void multiply(Deposits& deposits, PositionInA position_in_a, PositionInB position_in_b, PositionInC position_in_c) {
  constexpr unsigned kMostElements = 512;  // 32 x 16, the largest of CUDA's half-precision tiles
  constexpr unsigned kLanes = 32;
  const auto [fragments, m, n, k, unused_a, unused_b, unused_c] = data_of<MatrixMultiply>(deposits[0]);
  float a[kMostElements], b[kMostElements], c[kMostElements];
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    const auto& held = data_of<MatrixMultiply>(deposits[lane]);
    gather_tile(held.a, static_cast<int>(lane), m * k / kLanes, k, position_in_a, a);
    gather_tile(held.b, static_cast<int>(lane), k * n / kLanes, n, position_in_b, b);
    gather_tile(held.c, static_cast<int>(lane), m * n / kLanes, n, position_in_c, c);
  }
  for (unsigned row = 0; row < m; ++row)
    for (unsigned inner = 0; inner < k; ++inner)
      for (unsigned column = 0; column < n; ++column) c[row * n + column] += a[row * k + inner] * b[inner * n + column];
  for (unsigned lane = 0; lane < kLanes; ++lane)
    scatter_tile(c, static_cast<int>(lane), m * n / kLanes, n, position_in_c,
                 data_of<MatrixMultiply>(deposits[lane]).c);
}

std::uint32_t combine(Reduction reduction, std::uint32_t a, std::uint32_t b) {
  const auto as_signed = [](std::uint32_t word) { return static_cast<std::int32_t>(word); };
  switch (reduction) {
    case Reduction::add: return a + b;
    case Reduction::minimum: return std::min(a, b);
    case Reduction::maximum: return std::max(a, b);
    case Reduction::minimum_signed: return as_signed(a) < as_signed(b) ? a : b;
    case Reduction::maximum_signed: return as_signed(a) > as_signed(b) ? a : b;
    case Reduction::bit_and: return a & b;
    case Reduction::bit_or: return a | b;
    case Reduction::bit_xor: return a ^ b;
  }
  return a;
}

}  // namespace

unsigned block_barrier(const char* what, bool predicate, Site site) {
  return block_for(what, site).barrier(what, predicate, site);
}

void warp_barrier(const char* what, std::uint32_t mask, Site site) {
  block_for(what, site).meet(mask, WarpOperation::barrier, what, nullptr, site, [](Deposits&, std::uint32_t, Block&) {
  });
}

std::uint64_t warp_shuffle(const char* what, std::uint32_t mask, std::uint64_t value, unsigned source, Site site) {
  struct Lane {
    std::uint64_t given, taken;
    unsigned source;
  } mine{value, 0, source};
  block_for(what, site)
      .meet(mask, WarpOperation::shuffle, what, &mine, site, [](Deposits& deposits, std::uint32_t lanes, Block& block) {
        for_each_lane(lanes, [&](unsigned lane) {
          auto& taker = data_of<Lane>(deposits[lane]);
          if (!(lanes >> taker.source & 1u))
            block.fail(deposits[lane].fiber->site,
                       "shuffle from lane %u, which mask 0x%x does not name or which does not exist: %s", taker.source,
                       lanes, describe(*deposits[lane].fiber).text);
          taker.taken = data_of<Lane>(deposits[taker.source]).given;
        });
      });
  return mine.taken;
}

std::uint32_t warp_ballot(const char* what, std::uint32_t mask, bool predicate, Site site) {
  std::uint32_t mine = predicate ? 1 : 0;
  block_for(what, site)
      .meet(mask, WarpOperation::ballot, what, &mine, site, [](Deposits& deposits, std::uint32_t lanes, Block&) {
        std::uint32_t all = 0;
        for_each_lane(lanes, [&](unsigned lane) { all |= data_of<std::uint32_t>(deposits[lane]) << lane; });
        for_each_lane(lanes, [&](unsigned lane) { data_of<std::uint32_t>(deposits[lane]) = all; });
      });
  return mine;
}

std::uint32_t warp_match(const char* what, std::uint32_t mask, std::uint64_t value, Site site) {
  struct Lane {
    std::uint64_t value;
    std::uint32_t equal;
  } mine{value, 0};
  block_for(what, site)
      .meet(mask, WarpOperation::match, what, &mine, site, [](Deposits& deposits, std::uint32_t lanes, Block&) {
        for_each_lane(lanes, [&](unsigned lane) {
          auto& one = data_of<Lane>(deposits[lane]);
          for_each_lane(lanes, [&](unsigned other) {
            if (data_of<Lane>(deposits[other]).value == one.value) one.equal |= 1u << other;
          });
        });
      });
  return mine.equal;
}

std::uint32_t warp_reduce(const char* what, std::uint32_t mask, std::uint32_t value, Reduction reduction, Site site) {
  struct Lane {
    std::uint32_t value;
    Reduction reduction;
  } mine{value, reduction};
  block_for(what, site)
      .meet(mask, WarpOperation::reduce, what, &mine, site, [](Deposits& deposits, std::uint32_t lanes, Block&) {
        const unsigned first = static_cast<unsigned>(__builtin_ctz(lanes));
        auto [total, how] = data_of<Lane>(deposits[first]);
        for_each_lane(lanes & (lanes - 1),
                      [&](unsigned lane) { total = combine(how, total, data_of<Lane>(deposits[lane]).value); });
        for_each_lane(lanes, [&](unsigned lane) { data_of<Lane>(deposits[lane]).value = total; });
      });
  return mine.value;
}

void warp_gather(const char* what, std::uint64_t value, std::uint64_t (&all)[32], Site site) {
  struct Lane {
    std::uint64_t given;
    volatile std::uint64_t* all;  // volatile: see copy_floats
  } mine{value, all};
  block_for(what, site)
      .meet(kFullWarp, WarpOperation::gather, what, &mine, site,
            [](Deposits& deposits, std::uint32_t lanes, Block& block) {
              check_full_warp(deposits, lanes, block);
              for_each_lane(lanes, [&](unsigned taker) {
                for (unsigned lane = 0; lane < 32; ++lane)
                  data_of<Lane>(deposits[taker]).all[lane] = data_of<Lane>(deposits[lane]).given;
              });
            });
}

void warp_matrix_multiply(const char* what, MatrixMultiply& part, Site site) {
  block_for(what, site)
      .meet(kFullWarp, WarpOperation::matrix_multiply, what, &part, site,
            [](Deposits& deposits, std::uint32_t lanes, Block& block) {
              check_full_warp(deposits, lanes, block);
              const auto& any = data_of<MatrixMultiply>(deposits[0]);
              if (any.fragments == Fragments::mma) {
                multiply(deposits, mma_position_in_a, mma_position_in_b, mma_position_in_c);
              } else {
                const auto run = [](unsigned rows, unsigned columns) {
                  return [part = static_cast<int>(rows * columns / 32), width = static_cast<int>(columns)](
                             int lane, int i) -> Position {
                    return {(lane * part + i) / width, (lane * part + i) % width};
                  };
                };
                multiply(deposits, run(any.m, any.k), run(any.k, any.n), run(any.m, any.n));
              }
            });
}

AsyncWork& async_work_of_thread(const char* what, Site site) { return block_for(what, site).async_work(what, site); }

void mbarrier_init(const void* barrier, unsigned arrivals, Site site) {
  constexpr const char* kName = "mbarrier_init";
  Block& block = block_for(kName, site);
  block.mbarriers().init(block.enter(kName, site), block, barrier, arrivals);
}

void mbarrier_arrive(const char* what, const void* barrier, std::int64_t expected_bytes, Site site) {
  Block& block = block_for(what, site);
  block.mbarriers().arrive(block.enter(what, site), block, barrier, expected_bytes);
}

void mbarrier_land(const char* what, const void* barrier, std::int64_t bytes, Site site) {
  Block& block = block_for(what, site);
  block.mbarriers().land(block.enter(what, site), block, barrier, bytes);
}

void mbarrier_wait(const void* barrier, unsigned parity, Site site) {
  constexpr const char* kName = "mbarrier_wait";
  Block& block = block_for(kName, site);
  block.mbarriers().wait(block.enter(kName, site), block, barrier, parity);
}

void fail_kernel(Site site, const char* message) {
  if (Block* block = current_block()) block->fail(site, "%s, at %s:%d", message, site.file, site.line);
  throw Error(std::string(message) + ", at " + site.file + ":" + std::to_string(site.line), site);
}

}  // namespace gradring::simt::detail
