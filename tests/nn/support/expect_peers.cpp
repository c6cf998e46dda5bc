// SPDX-License-Identifier: Apache-2.0
#include "tests/nn/support/expect_peers.h"

#include <gtest/gtest.h>

#include "kernels/bench/kernel_case.h"
#include "kernels/bench/measure_case.h"

namespace gradring::tests {
namespace {

namespace kb = kernels::bench;

constexpr kb::Effort kLittle{.seconds = 0, .most_samples = 2};

/// One shape of a case family.
struct Problem {
  kb::Cases (*cases)(kb::CaseMaker&);
  std::string peer;
  kb::Extents extents;
};

std::vector<Problem> problems_of(const PeerNames& names) {
  return {
      {kb::conv2d_cases, names.conv2d, {{"batch", 3}, {"height", 9}, {"width", 8}, {"in", 5}, {"out", 7}}},
      {kb::conv2d_cases,
       names.conv2d,
       {{"batch", 1}, {"height", 10}, {"width", 7}, {"in", 8}, {"out", 16}, {"stride", 2}, {"padding", 1}}},
      // Channels of whole vectors, or nearly, in small images and in smaller ones: oneDNN has other plans.
      {kb::conv2d_cases,
       names.conv2d,
       {{"batch", 2}, {"height", 6}, {"width", 5}, {"in", 24}, {"out", 32}, {"padding", 1}}},
      {kb::conv2d_cases,
       names.conv2d,
       {{"batch", 2}, {"height", 4}, {"width", 4}, {"in", 32}, {"out", 48}, {"padding", 1}}},
      {kb::conv2d_cases,
       names.conv2d,
       {{"batch", 2}, {"height", 3}, {"width", 3}, {"in", 32}, {"out", 32}, {"padding", 1}}},
      {kb::gemm_cases, names.gemm, {{"batch", 3}, {"in", 5}, {"out", 7}}},
      {kb::gemm_cases, names.gemm, {{"batch", 33}, {"in", 17}, {"out", 65}}},
      {kb::conv_relu_pool_cases, names.fused, {{"batch", 2}, {"height", 9}, {"width", 8}, {"in", 3}, {"out", 5}}},
      {kb::conv_relu_pool_cases,
       names.fused,
       {{"batch", 2}, {"height", 12}, {"width", 11}, {"in", 4}, {"out", 8}, {"window", 3}}},
  };
}

/// Most libraries' calls overwrite their results; a product with bias and ReLU is no peer's.
bool may_lack_peers(const kb::KernelCase& c) {
  const auto has = [&](const char* part) { return c.name.find(part) != std::string::npos; };
  return has("accumulated") || has("+=") || has("= relu(");
}

void expect_peer(const kb::KernelCase& c, const std::string& name, kernels::Device& device, kernels::Stream& stream,
                 kb::Machine& machine) {
  SCOPED_TRACE(c.name + " [" + c.shape + "] " + std::string(name_of(c.dtype)));
  if (may_lack_peers(c) && c.peers.empty()) return;
  if (name.empty()) {
    EXPECT_TRUE(c.peers.empty());
    return;
  }
  ASSERT_EQ(c.peers.size(), 1u);
  EXPECT_EQ(c.peers.front().name, name);
  const auto results = kb::measure(c, device, stream, machine, kLittle, c.variants.front().name);
  ASSERT_EQ(results.size(), 2u);
  EXPECT_EQ(results.back().kind, kb::Measured::Kind::peer);
  EXPECT_LE(results.back().error, 1);
}

}  // namespace

void expect_peers(kernels::PeerMaker& peers, kernels::Device& device, kernels::DType dtype, const PeerNames& names) {
  const auto stream = device.make_stream(kernels::StreamMode::in_place);
  const kernels::KernelSet kernels = kernels::kernel_set();
  const auto machine = kb::make_cpu_machine();
  for (const Problem& problem : problems_of(names)) {
    kb::CaseMaker make({.kernels = kernels,
                        .device = device,
                        .stream = *stream,
                        .dtype = dtype,
                        .extents = problem.extents,
                        .peers = &peers});
    for (const kb::KernelCase& c : problem.cases(make)) expect_peer(c, problem.peer, device, *stream, *machine);
  }
}

}  // namespace gradring::tests
