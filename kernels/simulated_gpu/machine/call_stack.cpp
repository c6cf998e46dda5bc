// SPDX-License-Identifier: Apache-2.0
#include "kernels/simulated_gpu/machine/call_stack.h"

#include <algorithm>
#include <cstring>

#include "kernels/simulated_gpu/machine/warp.h"
#include "kernels/simulated_gpu/memory/shared_memory.h"

namespace gradring::simulated_gpu {
namespace {

constexpr std::size_t kAlignment = 128;
// Of a thread: a recursion that does not end is found before it fills the host's memory.
constexpr std::size_t kMostSavedBytes = std::size_t{1} << 20;
constexpr std::size_t kMostActivations = std::size_t{1} << 15;

std::size_t aligned(std::size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

/// Calls f(bytes of the lane in the frame, their number) for the rows of a function that are not predicates.
template <class F>
void for_each_row(Warp& warp, unsigned lane, const FunctionRows& rows, F f) {
  const auto visit = [&](const FunctionRows::Row& row) {
    if (row.width != 0) f(warp.row<std::byte>(row.slot) + lane * row.width, row.width);
  };
  for (const FunctionRows::Row& row : rows.registers) visit(row);
  for (const FunctionRows::LocalAddress& local : rows.local) visit(local.row);
}

}  // namespace

CallStack::CallStack(const Program& program)
    : program_(program),
      parameter_bytes_(aligned(program.kernel->call_parameter_bytes)),
      memory_(std::make_unique<std::byte[]>(kWarpSize * parameter_bytes_ + kAlignment)) {
  const auto address = reinterpret_cast<std::uintptr_t>(memory_.get());
  parameters_begin_ = memory_.get() + (aligned(address) - address);
}

void CallStack::clear() {
  if (program_.kernel->functions.empty()) return;
  for (Lane& lane : lanes_) {
    lane.activations.clear();
    lane.saved.clear();
    lane.local_bytes = 0;
  }
}

bool CallStack::enter(Warp& warp, unsigned lane, const CallDetails& details, const ptx::Function& function,
                      std::size_t position) {
  Lane& own = lanes_[lane];
  if (function.local_bytes > program_.stack_bytes - own.local_bytes || own.saved.size() > kMostSavedBytes ||
      own.activations.size() >= kMostActivations)
    return false;
  own.activations.push_back(
      {.details = &details, .function = &function, .position = position, .saved = own.saved.size()});
  if (saves(details, function)) save(warp, lane, *details.caller);
  for (std::size_t i = 0; i < details.parameters.size(); ++i)
    std::memcpy(parameter(lane, function.parameters[i]), parameter(lane, details.parameters[i]),
                bytes_of(function.parameters[i]));
  const auto& rows = program_.functions[static_cast<std::size_t>(&function - program_.kernel->functions.data())];
  for (const FunctionRows::LocalAddress& local : rows.local)
    warp.row<std::uint64_t>(local.row.slot)[lane] =
        kFirstLocalAddress + program_.stack_begin + own.local_bytes + local.offset;
  std::fill_n(warp.local_written(lane) + program_.stack_begin + own.local_bytes, function.local_bytes, std::uint8_t{0});
  own.local_bytes += function.local_bytes;
  return true;
}

std::size_t CallStack::leave(Warp& warp, unsigned lane) {
  Lane& own = lanes_[lane];
  const Activation left = own.activations.back();
  own.activations.pop_back();
  own.local_bytes -= left.function->local_bytes;
  // The function's memory may be that of the caller, if it called itself.
  std::vector<std::vector<std::byte>> results;
  for (const std::size_t result : left.function->results)
    results.emplace_back(parameter(lane, result), parameter(lane, result) + bytes_of(result));
  if (saves(*left.details, *left.function)) restore(warp, lane, *left.details->caller, left.saved);
  for (std::size_t i = 0; i < left.details->results.size(); ++i)
    std::ranges::copy(results[i], parameter(lane, left.details->results[i]));
  return left.position;
}

void CallStack::save(Warp& warp, unsigned lane, const ptx::Function& function) {
  std::vector<std::byte>& saved = lanes_[lane].saved;
  const auto& rows = program_.functions[static_cast<std::size_t>(&function - program_.kernel->functions.data())];
  for_each_row(warp, lane, rows,
               [&](std::byte* bytes, unsigned width) { saved.insert(saved.end(), bytes, bytes + width); });
  for (const FunctionRows::Row& row : rows.registers)
    if (row.width == 0) saved.push_back(static_cast<std::byte>(warp.predicate(row.slot) >> lane & 1));
  const std::byte* const parameters = parameters_begin_ + lane * parameter_bytes_;
  saved.insert(saved.end(), parameters + function.own_begin, parameters + function.own_end);
}

void CallStack::restore(Warp& warp, unsigned lane, const ptx::Function& function, std::size_t saved) {
  std::vector<std::byte>& bytes_saved = lanes_[lane].saved;
  const auto& rows = program_.functions[static_cast<std::size_t>(&function - program_.kernel->functions.data())];
  const std::byte* from = bytes_saved.data() + saved;
  for_each_row(warp, lane, rows, [&](std::byte* bytes, unsigned width) {
    std::memcpy(bytes, from, width);
    from += width;
  });
  for (const FunctionRows::Row& row : rows.registers)
    if (row.width == 0) warp.set_predicate(row.slot, kLaneBits[lane], *from++ != std::byte{0} ? kAllLanes : 0);
  std::memcpy(parameters_begin_ + lane * parameter_bytes_ + function.own_begin, from,
              function.own_end - function.own_begin);
  bytes_saved.resize(saved);
}

std::vector<std::size_t> CallStack::return_positions(unsigned lane) const {
  std::vector<std::size_t> positions;
  for (const Activation& activation : lanes_[lane].activations) positions.push_back(activation.position);
  std::ranges::reverse(positions);
  return positions;
}

}  // namespace gradring::simulated_gpu
