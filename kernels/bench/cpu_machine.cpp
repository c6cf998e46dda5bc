// SPDX-License-Identifier: Apache-2.0
#include <cstdio>

#include "kernels/bench/evict.h"
#include "kernels/bench/machine.h"
#include "kernels/bench/roof.h"

namespace gradring::kernels::bench {
namespace {

constexpr double kGiga = 1e-9;

class CpuMachine final : public Machine {
 public:
  std::string limits() override {
    char text[160];
    std::snprintf(text, sizeof text, "one core: %.0f GFLOP/s in f32; %.0f GB/s within 1 MB, %.0f GB/s from memory",
                  roof_.flops_per_second() * kGiga, roof_.bytes_per_second(1e6, false) * kGiga,
                  roof_.bytes_per_second(16e6, true) * kGiga);
    return text;
  }

  /// What is overwritten unread counts twice, as a cache fetches it first.
  double least_seconds(const Work& work, bool cold) override {
    return roof_.seconds({.footprint_bytes = work.footprint_bytes,
                          .traffic_bytes = work.traffic_bytes + work.unread_bytes,
                          .flops = work.flops},
                         cold);
  }

  void flush(const KernelCase& c) override {
    for (const auto& array : c.arrays) evict({array->as<const std::byte>(Side::device), array->bytes()});
  }

 private:
  Roof roof_;
};

}  // namespace

std::unique_ptr<Machine> make_cpu_machine() { return std::make_unique<CpuMachine>(); }

}  // namespace gradring::kernels::bench
