// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "kernels/simulated_gpu/machine/lanes.h"
#include "kernels/simulated_gpu/machine/program.h"

namespace gradring::simulated_gpu {

/// Details of a call: what is copied from and to the parameters of the function. Operation::a is the row of the
/// function's address, if there is no `function`.
struct CallDetails {
  const ptx::Function* function = nullptr;       ///< null for an indirect call
  const ptx::Function* caller = nullptr;         ///< null for the kernel itself
  std::vector<std::size_t> results, parameters;  ///< of the call: indexes of Kernel::call_parameters
};

/// The device functions that the threads of a warp are in, and the memory of their parameters.
///
/// The registers of a function are rows of the warp's frame. What a recursive function has there is saved while it
/// calls.
class CallStack {
 public:
  explicit CallStack(const Program& program);
  void clear();

  /// The address of a parameter's memory, in that of the host.
  std::uint64_t parameter_address(unsigned lane, std::uint64_t offset) const {
    return reinterpret_cast<std::uint64_t>(parameters_begin_) + lane * parameter_bytes_ + offset;
  }
  bool holds(std::uint64_t address, std::size_t bytes) const {
    const std::uint64_t offset = address - reinterpret_cast<std::uint64_t>(parameters_begin_);
    return offset < kWarpSize * parameter_bytes_ && bytes <= kWarpSize * parameter_bytes_ - offset;
  }

  /// `lane` enters the function and will return to `position`. False if its stack has no room.
  bool enter(Warp& warp, unsigned lane, const CallDetails& details, const ptx::Function& function,
             std::size_t position);
  /// It leaves the last one that it entered, and returns to the position that is returned.
  std::size_t leave(Warp& warp, unsigned lane);
  /// Whether a thread is in a function.
  bool is_used() const {
    return std::ranges::any_of(lanes_, [](const Lane& lane) { return !lane.activations.empty(); });
  }
  /// Where the local memory of the kernel, and of the functions that a thread is in, ends: behind it are the frames of
  /// functions that have returned.
  std::uint64_t local_end(unsigned lane) const {
    return program_.stack_bytes == 0 ? program_.local_bytes : program_.stack_begin + lanes_[lane].local_bytes;
  }
  /// Where it will return to, the innermost function first.
  std::vector<std::size_t> return_positions(unsigned lane) const;
  std::size_t next_position(unsigned lane) const { return lanes_[lane].activations.back().position; }

 private:
  struct Activation {
    const CallDetails* details = nullptr;
    const ptx::Function* function = nullptr;
    std::size_t position = 0;
    std::size_t saved = 0;  ///< bytes of the lane's saved rows before
  };
  struct Lane {
    std::vector<Activation> activations;
    std::vector<std::byte> saved;
    std::size_t local_bytes = 0;  ///< of the functions that it is in
  };

  bool saves(const CallDetails& details, const ptx::Function& function) const {
    return details.caller != nullptr && details.caller->is_recursive && function.is_recursive;
  }
  void save(Warp& warp, unsigned lane, const ptx::Function& function);
  void restore(Warp& warp, unsigned lane, const ptx::Function& function, std::size_t saved);
  std::byte* parameter(unsigned lane, std::size_t index) const {
    return parameters_begin_ + lane * parameter_bytes_ + program_.kernel->call_parameters[index].offset;
  }
  std::size_t bytes_of(std::size_t index) const { return program_.kernel->call_parameters[index].bytes; }

  const Program& program_;
  std::size_t parameter_bytes_;  ///< of a lane
  std::unique_ptr<std::byte[]> memory_;
  std::byte* parameters_begin_;
  std::array<Lane, kWarpSize> lanes_;
};

}  // namespace gradring::simulated_gpu
