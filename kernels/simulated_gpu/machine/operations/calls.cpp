// SPDX-License-Identifier: Apache-2.0
// call, ret: device functions, and functions of the runtime; brx.
#include <algorithm>

#include "kernels/simulated_gpu/machine/block.h"
#include "kernels/simulated_gpu/machine/call_stack.h"
#include "kernels/simulated_gpu/machine/fault_report.h"
#include "kernels/simulated_gpu/machine/operations/access.h"
#include "kernels/simulated_gpu/machine/operations/handlers.h"
#include "kernels/simulated_gpu/machine/operations/operations.h"
#include "kernels/simulated_gpu/machine/runtime_functions.h"
#include "kernels/simulated_gpu/memory/shared_memory.h"

namespace gradring::simulated_gpu {
namespace {

using ptx::Type;

std::size_t position_of_next(const Operation& operation, const Warp& warp) {
  return warp.block().program().position_of(operation) + 1;
}

/// All lanes enter one function.
void enter(const Operation& operation, Warp& warp, Mask lanes, const ptx::Function& function) {
  const auto& details = *static_cast<const CallDetails*>(operation.details);
  for_each_lane(lanes, [&](unsigned lane) {
    if (!warp.calls().enter(warp, lane, details, function, position_of_next(operation, warp)))
      warp.fail(operation, lane, joined("the stack of a thread is full at a call of ", function_label(function)));
  });
}

void call(const Operation& operation, Warp& warp, Mask active) {
  const ptx::Function& function = *static_cast<const CallDetails*>(operation.details)->function;
  enter(operation, warp, active, function);
  warp.jump(active, function.begin);
}

/// Whether a function has the parameters and results that a call gives it.
bool fits(const ptx::Kernel& kernel, const CallDetails& details, const ptx::Function& function) {
  const auto same = [&](std::size_t a, std::size_t b) {
    return kernel.call_parameters[a].bytes == kernel.call_parameters[b].bytes;
  };
  return std::ranges::equal(details.parameters, function.parameters, same) &&
         std::ranges::equal(details.results, function.results, same);
}

void call_indirectly(const Operation& operation, Warp& warp, Mask active) {
  const auto& details = *static_cast<const CallDetails*>(operation.details);
  const ptx::Kernel& kernel = *warp.block().program().kernel;
  const std::uint64_t* const addresses = warp.row<std::uint64_t>(operation.a);
  for (Mask rest = active; rest != 0;) {
    const unsigned first = lowest_lane(rest);
    const auto function = std::ranges::find(kernel.functions, addresses[first], &ptx::Function::address);
    if (function == kernel.functions.end() || !function->is_defined)
      warp.fail(operation, first,
                joined("an indirect call targets ", addresses[first], ", which is not the address of a function"));
    if (!fits(kernel, details, *function))
      warp.fail(operation, first, joined(function_label(*function), " is called with parameters of other sizes"));
    const Mask lanes =
        rest & lanes_where([&](std::uint64_t address) { return address == addresses[first]; }, addresses);
    enter(operation, warp, lanes, *function);
    warp.go_to(lanes, function->begin);
    rest &= ~lanes;
  }
}

void return_to_caller(const Operation&, Warp& warp, Mask active) {
  CallStack& calls = warp.calls();
  for (Mask rest = active; rest != 0;) {
    const std::size_t position = calls.next_position(lowest_lane(rest));
    Mask lanes = 0;
    for_each_lane(rest, [&](unsigned lane) {
      if (calls.next_position(lane) == position) lanes |= kLaneBits[lane];
    });
    for_each_lane(lanes, [&](unsigned lane) { calls.leave(warp, lane); });
    if (lanes == active) return warp.jump(active, position);
    warp.go_to(lanes, position);
    rest &= ~lanes;
  }
}

void call_runtime(const Operation& operation, Warp& warp, Mask active) {
  const auto& details = *static_cast<const CallDetails*>(operation.details);
  const ptx::Kernel& kernel = *warp.block().program().kernel;
  const auto function = warp.block().runtime_functions()->find(details.function->name);
  for_each_lane(active, [&](unsigned lane) {
    const auto bytes = [&](std::size_t index) {
      const ptx::Variable& variable = kernel.call_parameters[index];
      return RuntimeCall::Bytes(reinterpret_cast<std::byte*>(warp.calls().parameter_address(lane, variable.offset)),
                                variable.bytes);
    };
    std::vector<RuntimeCall::Bytes> arguments;
    for (const std::size_t index : details.parameters) arguments.push_back(bytes(index));
    RuntimeCall made(operation, warp, lane, std::move(arguments),
                     details.results.empty() ? RuntimeCall::Bytes{} : bytes(details.results[0]));
    function->second(made);
  });
}

std::vector<std::size_t> parameters_of(Decoder& decoder, const ptx::Operand& list) {
  std::vector<std::size_t> made;
  for (const ptx::Operand& part : list.parts) {
    if (part.kind != ptx::Operand::Kind::parameter) decoder.reject("parameters and results of a call must be .param");
    made.push_back(part.target);
  }
  return made;
}

void translate_call(Decoder& decoder, Operation& operation) {
  decoder.take("uni");
  decoder.finish(3);
  const ptx::Kernel& kernel = *decoder.frame().program().kernel;
  const ptx::Operand& target = decoder.operand(1);
  CallDetails details{.caller = decoder.frame().function(),
                      .results = parameters_of(decoder, decoder.operand(0)),
                      .parameters = parameters_of(decoder, decoder.operand(2))};
  if (target.kind == ptx::Operand::Kind::reg) {
    operation.a = decoder.source(target, Type::b64);
    operation.execute = &call_indirectly;
  } else {
    details.function = &kernel.functions[target.target];
    if (!fits(kernel, details, *details.function)) decoder.reject("the function has other parameters or results");
    operation.execute = details.function->is_defined ? &call : &call_runtime;
  }
  operation.details = decoder.keep_details(std::move(details));
}

void translate_ret(Decoder& decoder, Operation& operation) {
  decoder.take("uni");
  decoder.finish(0);
  operation.execute =
      decoder.frame().function() == nullptr ? end_of_kernel(decoder.frame()).execute : &return_to_caller;
}

/// Each lane goes to the label that its index chooses.
void branch_by_index(const Operation& operation, Warp& warp, Mask active) {
  const auto& targets = *static_cast<const std::vector<std::size_t>*>(operation.details);
  const std::uint32_t* const indices = warp.row<std::uint32_t>(operation.a);
  for (Mask rest = active; rest != 0;) {
    const unsigned first = lowest_lane(rest);
    if (indices[first] >= targets.size())
      warp.fail(operation, first,
                joined("brx.idx is given the index ", indices[first], "; expected less than ", targets.size()));
    const Mask lanes = rest & lanes_where([&](std::uint32_t index) { return index == indices[first]; }, indices);
    warp.go_to(lanes, targets[indices[first]]);
    rest &= ~lanes;
  }
}

/// brx.idx index, targets
void translate_brx(Decoder& decoder, Operation& operation) {
  if (!decoder.take("idx")) decoder.reject(".idx is expected");
  decoder.take("uni");
  decoder.finish(2);
  operation.a = decoder.source(0, Type::b32);
  std::vector<std::size_t> targets;
  for (const ptx::Operand& label : decoder.operand(1).parts) {
    if (label.kind != ptx::Operand::Kind::label) decoder.reject("the targets are not labels");
    targets.push_back(label.target);
  }
  operation.details = decoder.keep_details(std::move(targets));
  operation.execute = &branch_by_index;
}

constexpr Opcode kOpcodes[] = {{"call", translate_call}, {"ret", translate_ret}, {"brx", translate_brx}};

}  // namespace

std::span<const Opcode> call_opcodes() { return kOpcodes; }

std::vector<std::byte> RuntimeCall::read(std::uint64_t address, std::size_t bytes) const {
  std::vector<std::byte> made(bytes);
  const std::byte* from = reinterpret_cast<const std::byte*>(address);
  if (is_in_local_window(address)) {
    const std::uint64_t offset = address - kLocalWindow - kFirstLocalAddress;
    if (offset >= warp_.local_bytes() || bytes > warp_.local_bytes() - offset)
      fail(joined("local memory is read out of bounds: ", bytes, " bytes at ", address - kLocalWindow));
    from = warp_.local_memory(lane_) + offset;
  } else if (is_in_shared_window(address)) {
    fail("a function of the runtime is given an address of shared memory, which is not supported");
  } else if (bytes > 0) {
    check_global_read(operation_, warp_, lane_, static_cast<unsigned>(bytes), address);
  }
  if (bytes > 0) std::memcpy(made.data(), from, bytes);
  return made;
}

std::string RuntimeCall::string_at(std::uint64_t address) const {
  std::string text;
  for (;; ++address) {
    const char next = static_cast<char>(read(address, 1).front());
    if (next == '\0') return text;
    text.push_back(next);
  }
}

int RuntimeCall::device() const { return warp_.block().launch().device; }

Extent RuntimeCall::block() const { return warp_.block().index(); }

Extent RuntimeCall::thread() const { return warp_.thread(lane_); }

std::string RuntimeCall::location() const {
  return describe_location(warp_, warp_.block().program().position_of(operation_), lane_);
}

void RuntimeCall::fail(const std::string& what) const { warp_.fail(operation_, lane_, what); }

void RuntimeCall::fail_signature() const { fail("a function of the runtime is called with arguments of other sizes"); }

}  // namespace gradring::simulated_gpu
