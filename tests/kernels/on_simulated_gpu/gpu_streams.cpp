// SPDX-License-Identifier: Apache-2.0
// The streams on which the tests of kernels run in this program: those of a simulated GPU, with every seed of
// GRADRING_TEST_SEEDS, numbers and ranges ("1-20,33"), else 1 to 3. GRADRING_TEST_GPU names the card, else an H100.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <charconv>
#include <cstdlib>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/base/error.h"
#include "kernels/runtime/cuda/cuda_device.h"
#include "kernels/runtime/stream.h"
#include "kernels/simulated_gpu/cudart/kernel_table.h"
#include "kernels/simulated_gpu/cudart/runtime.h"
#include "tests/kernels/on_simulated_gpu/host_heap.h"
#include "tests/support/each_stream.h"

namespace gradring::tests {
namespace {

std::string setting(const char* name, const char* otherwise) {
  const char* const value = std::getenv(name);
  return value && *value ? value : otherwise;
}

std::uint64_t take_number(std::string_view& text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  check(error == std::errc(), "GRADRING_TEST_SEEDS: expected numbers and ranges, such as 1-20,33");
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return number;
}

bool take(std::string_view& text, char expected) {
  if (!text.starts_with(expected)) return false;
  text.remove_prefix(1);
  return true;
}

std::vector<std::uint64_t> read_seeds(std::string_view text) {
  std::vector<std::uint64_t> seeds;
  do {
    const std::uint64_t first = take_number(text);
    const std::uint64_t last = take(text, '-') ? take_number(text) : first;
    for (std::uint64_t seed = first; seed <= last; ++seed) seeds.push_back(seed);
  } while (take(text, ','));
  check(text.empty() && !seeds.empty(), "GRADRING_TEST_SEEDS: expected numbers and ranges, such as 1-20,33");
  return seeds;
}

/// One for the process, as of a real GPU. What it did is printed at the end.
class SimulatedGpu {
 public:
  SimulatedGpu() : seeds_(read_seeds(setting("GRADRING_TEST_SEEDS", "1-3"))) {
    const std::string card = setting("GRADRING_TEST_GPU", "h100");
    simulated_gpu::configure({.card = card, .devices = 1, .pageable = &host_heap()});
    tell_when_freed(simulated_gpu::runtime().memory);
    device_ = std::make_unique<kernels::CudaDevice>(0);
  }
  ~SimulatedGpu() {
    const simulated_gpu::KernelTable& kernels = simulated_gpu::kernel_table();
    const std::vector<std::string> unused = kernels.unused();
    std::cout << "Executed " << launches_ << " launches of " << kernels.size() - unused.size() << " of "
              << kernels.size() << " kernels on a " << device_->description() << ", with " << seeds_.size()
              << " seed(s) from " << seeds_.front() << " to " << seeds_.back() << std::endl;
    if (std::getenv("GRADRING_TEST_LIST_UNUSED"))
      for (const std::string& name : unused) std::cout << "not used: " << name << std::endl;
  }

  kernels::CudaDevice& device() { return *device_; }
  const std::vector<std::uint64_t>& seeds() const { return seeds_; }
  void note_launches() { launches_ += simulated_gpu::runtime().launches; }

 private:
  std::vector<std::uint64_t> seeds_;
  std::unique_ptr<kernels::CudaDevice> device_;
  std::uint64_t launches_ = 0;
};

}  // namespace

void for_each_stream(const std::function<void(kernels::Device&, kernels::Stream&)>& body) {
  static SimulatedGpu gpu;
  for (const std::uint64_t seed : gpu.seeds()) {
    const std::size_t faults_before = simulated_gpu::runtime().faults.all().size();
    SCOPED_TRACE(gpu.device().description() + ", seed " + std::to_string(seed));
    simulated_gpu::runtime().reseed(seed);
    const auto stream = gpu.device().make_stream(kernels::StreamMode::asynchronous);
    body(gpu.device(), *stream);
    finish(*stream);
    gpu.note_launches();
    const std::vector<std::string> faults = simulated_gpu::runtime().faults.texts();
    EXPECT_THAT(std::vector(faults.begin() + static_cast<std::ptrdiff_t>(faults_before), faults.end()),
                testing::IsEmpty());
  }
}

}  // namespace gradring::tests
