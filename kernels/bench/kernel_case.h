// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "kernels/bench/bench_array.h"

namespace gradring::kernels::bench {

/// How far an element may be from what the reference says, given that.
using Bound = std::function<double(double expected)>;

/// One pass of one operation on one shape, ready to run: who can do it, what it costs, and when the result is right.
struct KernelCase {
  std::string name;   ///< "relu backward"
  std::string shape;  ///< "elements=1384448"
  DType dtype = DType::f32;
  double bytes = 0;            ///< read and written by one call, by the operation's contract
  double unread_bytes = 0;     ///< of these, written without having been read
  double flops = 0;            ///< floating-point operations of one call, by the same; 0 where they do not matter
  DType factors = DType::f32;  ///< of the products among them: 16 bits may go to tensor cores

  struct Output {
    const BenchArray* array = nullptr;
    Bound bound;
  };
  std::vector<std::unique_ptr<BenchArray>> arrays{};  ///< all that it touches
  std::vector<Output> outputs{};                      ///< those that it writes

  struct Candidate {
    std::string name;
    std::function<void(Stream&)> run;
  };
  std::function<void()> reference{};   ///< on the host side
  std::vector<Candidate> variants{};   ///< on the device side: those of the table that can run here
  std::vector<Candidate> peers{};      ///< on the device side: libraries that do the same
  std::function<void()> plain_loop{};  ///< on the device side, CPU only: the loop that anyone would write; or empty
};

}  // namespace gradring::kernels::bench
