// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

#include "kernels/simt/engine/fiber.h"

namespace gradring::simt::detail {

/// What the lanes of a warp do together. Only lanes that do the same may meet.
enum class WarpOperation : std::uint8_t { barrier, shuffle, ballot, match, reduce, gather, matrix_multiply };

/// One lane's part in a warp operation, deposited until all lanes of the mask have come.
struct Deposit {
  std::uint32_t mask = 0;
  WarpOperation operation = WarpOperation::barrier;
  void* data = nullptr;  // on the lane's stack; the last lane to come reads and writes it for all
  Fiber* fiber = nullptr;
};
using Deposits = std::array<Deposit, 32>;

/// The lanes of one warp: which exist, which have left the kernel, which wait.
struct Warp {
  std::uint32_t existing = 0, exited = 0, waiting = 0;
  Deposits deposits;
  // For TSan: per group of lanes, known by its lowest lane, two objects that take turns. With one, a fast lane's next
  // arrival would give the slow lanes of this one a happens-before edge that the program does not have.
  char barrier_edges[32][2] = {};
  unsigned char phase[32] = {};

  void begin(unsigned lanes) {
    existing = lanes >= 32 ? ~0u : (1u << lanes) - 1;
    exited = waiting = 0;
  }
};

}  // namespace gradring::simt::detail
