// SPDX-License-Identifier: Apache-2.0
// bra, exit, trap, bar.sync, bar.red, bar.warp.sync, griddepcontrol.
#include <algorithm>

#include "kernels/simulated_gpu/machine/block.h"
#include "kernels/simulated_gpu/machine/operations/handlers.h"
#include "kernels/simulated_gpu/machine/operations/operations.h"

namespace gradring::simulated_gpu {
namespace {

using ptx::Type;

void branch(const Operation& operation, Warp& warp, Mask active) { warp.jump(active, operation.immediate); }

void branch_uniformly(const Operation& operation, Warp& warp, Mask active) {
  if (active != warp.running())
    warp.fail(operation, lowest_lane(active), "bra.uni is taken by a part of the threads that are here");
  warp.jump(active, operation.immediate);
}

void end_threads(const Operation&, Warp& warp, Mask active) { warp.end(active); }

void trap(const Operation& operation, Warp& warp, Mask active) {
  warp.fail(operation, lowest_lane(active), "trap", FindingKind::trap);
}

/// Whether a position is the ret of a device function: what follows is the code of another one, and where it returns to
/// is not known here.
bool is_return(const Program& program, std::size_t position) {
  const auto& code = program.kernel->code;
  return position < std::min(code.size(), program.kernel->entry) && code[position].words.front() == "ret";
}

/// Whether threads at a position execute nothing more of the kernel, or of their function.
bool is_about_to_end(const Program& program, std::size_t position) {
  for (std::size_t steps = 0; steps < program.operations.size(); ++steps) {
    const Operation& operation = program.operations[position];
    if (operation.guard != program.always) return false;
    if (operation.execute == &end_threads || is_return(program, position)) return true;
    if (operation.execute != &branch && operation.execute != &branch_uniformly) return false;
    position = operation.immediate;
  }
  return false;
}

/// The positions to which threads at `begin` may come, within the code of their function.
std::vector<bool> reachable_from(const Program& program, std::size_t begin) {
  std::vector<bool> reached(program.operations.size());
  std::vector<std::size_t> open = {begin};
  while (!open.empty()) {
    const std::size_t position = open.back();
    open.pop_back();
    if (position >= reached.size() || reached[position]) continue;
    reached[position] = true;
    const Operation& operation = program.operations[position];
    const bool ends = operation.execute == &end_threads || is_return(program, position);
    const bool branches = operation.execute == &branch || operation.execute == &branch_uniformly;
    if (branches) open.push_back(operation.immediate);
    if ((!branches && !ends) || operation.guard != program.always) open.push_back(position + 1);
  }
  return reached;
}

/// The lanes that are not at this barrier, but where those that wait for it will be later: they have passed it. Lanes
/// that return early are not among them: nothing of what they still do comes after the barrier, or they are about to
/// end.
Mask lanes_that_passed(const Operation& barrier, Warp& warp, Mask active) {
  const Program& program = warp.block().program();
  const std::size_t next = program.position_of(barrier) + 1;
  BarrierDetails::Behind& behind = *static_cast<const BarrierDetails*>(barrier.details)->behind;
  std::call_once(behind.is_known, [&] { behind.positions = reachable_from(program, next); });
  Mask passed = 0;
  for (const Fragment& fragment : warp.waiting())
    if (behind.positions[fragment.position] && !is_about_to_end(program, fragment.position)) passed |= fragment.lanes;
  if (!is_about_to_end(program, next)) passed |= warp.running() & ~active;
  return passed;
}

void wait_at_barrier(const Operation& operation, Warp& warp, Mask active) {
  warp.wait_at_barrier(active, active == warp.living() ? 0 : lanes_that_passed(operation, warp, active));
}

void arrive_at_barrier(const Operation& operation, Warp& warp, Mask active) {
  if (warp.are_together(active, kAllLanes)) warp.block().arrive_without_waiting(operation, warp, active);
}

void wait_for_lanes(const Operation& operation, Warp& warp, Mask active);

/// The lanes that wait at another bar.warp.sync with the same mask.
Mask waiting_with(Warp& warp, Mask members) {
  Mask found = 0;
  for (const Fragment& fragment : warp.waiting()) {
    const Operation& operation = warp.block().program().operations[fragment.position];
    if (fragment.state != Fragment::State::at_collective || operation.execute != &wait_for_lanes) continue;
    found |= fragment.lanes & lanes_where([&](Mask mask) { return mask == members; }, warp.row<Mask>(operation.a));
  }
  return found;
}

/// PTX ISA, bar.warp.sync: a thread waits until all threads of its mask have executed a bar.warp.sync with the same
/// mask, which may be another instruction.
void wait_for_lanes(const Operation& operation, Warp& warp, Mask active) {
  Mask waiting = 0;
  Mask awaited = 0;
  for_each_mask(operation, warp, active, operation.a, [&](Mask group, Mask members) {
    const Mask others = warp.waiting().empty() ? 0 : waiting_with(warp, members);
    const Mask all = group | others;
    if ((members & warp.living() & ~all) != 0) {
      waiting |= group;
      awaited |= members;
      return;
    }
    warp.block().shared().clocks().order_lanes(warp.index(), all, all == warp.living());
    if (others != 0) warp.end_waiting(others);
  });
  if (waiting != 0) warp.wait_for_lanes(waiting, active, awaited);
}

void launch_dependents(const Operation&, Warp& warp, Mask) {
  if (GlobalAccesses* const accesses = warp.block().accesses()) accesses->note_launch_of_dependents();
}

void wait_for_launch_before(const Operation&, Warp& warp, Mask) {
  if (GlobalAccesses* const accesses = warp.block().accesses()) accesses->note_wait_for_launch_before();
}

void translate_bra(Decoder& decoder, Operation& operation) {
  operation.execute = decoder.take("uni") ? &branch_uniformly : &branch;
  decoder.finish(1);
  if (decoder.operand(0).kind != ptx::Operand::Kind::label) decoder.reject("the target is not a label");
  operation.immediate = decoder.operand(0).target;
}

void translate_end(Decoder& decoder, Operation& operation) {
  decoder.finish(0);
  operation.execute = &end_threads;
}

void translate_trap(Decoder& decoder, Operation& operation) {
  decoder.finish(0);
  operation.execute = &trap;
}

/// griddepcontrol: kernels of a stream are executed one after another, whatever they allow, but what one does before
/// its wait is compared with the other.
void translate_dependent_launch(Decoder& decoder, Operation& operation) {
  const std::size_t function = decoder.take_one_of({"launch_dependents", "wait"});
  if (function > 1) decoder.reject("expected .launch_dependents or .wait");
  decoder.finish(0);
  operation.execute = function == 0 ? &launch_dependents : &wait_for_launch_before;
}

/// bar.warp.sync mask
void translate_warp_barrier(Decoder& decoder, Operation& operation) {
  if (!decoder.take("sync")) decoder.reject(".sync is expected");
  decoder.finish(1);
  operation.a = decoder.source(0, Type::b32);
  operation.execute = &wait_for_lanes;
}

/// bar.red.popc.u32 d, a, p and bar.red.and.pred d, a, p; a number of threads may follow a.
void translate_barrier_reduction(Decoder& decoder, Operation& operation) {
  using enum BarrierDetails::Reduction;
  const std::size_t function = decoder.take_one_of({"and", "or", "popc"});
  const Type type = decoder.take_type();
  if (function > 2 || (type == Type::pred) != (function < 2))
    decoder.reject("expected .and.pred, .or.pred or .popc.u32");
  const bool has_threads = decoder.operand_count() == 4;
  decoder.finish(has_threads ? 4 : 3);
  operation.d = decoder.destination(0, type);
  operation.a = decoder.source(1, Type::u32);
  operation.b = has_threads ? decoder.source(2, Type::u32) : decoder.frame().of_constant(0, 4);
  const Decoder::Predicate predicate = decoder.predicate(decoder.operand(has_threads ? 3 : 2));
  operation.c = predicate.slot;
  operation.details = decoder.keep_details(BarrierDetails{function == 0   ? all
                                                          : function == 1 ? any
                                                                          : count,
                                                          predicate.flip});
  operation.execute = &wait_at_barrier;
}

void translate_bar(Decoder& decoder, Operation& operation) {
  if (decoder.take("warp")) return translate_warp_barrier(decoder, operation);
  if (decoder.take("cluster")) return translate_cluster_barrier(decoder, operation);
  decoder.take("cta");
  const bool is_aligned = decoder.take("aligned") || decoder.instruction().words.front() == "bar";
  if (decoder.take("red")) return translate_barrier_reduction(decoder, operation);
  const std::size_t function = decoder.take_one_of({"sync", "arrive"});
  if (function > 1) decoder.reject("expected .sync, .arrive or .red");
  const bool arrives = function == 1;
  const bool has_threads = arrives || decoder.operand_count() == 2;
  decoder.finish(has_threads ? 2 : 1);
  operation.a = decoder.source(0, Type::u32);
  operation.b = has_threads ? decoder.source(1, Type::u32) : decoder.frame().of_constant(0, 4);
  operation.d = decoder.frame().of_sink();
  operation.c = decoder.frame().of_true();
  operation.details = decoder.keep_details(BarrierDetails{.is_aligned = is_aligned});
  operation.execute = arrives ? &arrive_at_barrier : &wait_at_barrier;
}

constexpr Opcode kOpcodes[] = {
    {"bra", translate_bra}, {"exit", translate_end},    {"trap", translate_trap},
    {"bar", translate_bar}, {"barrier", translate_bar}, {"griddepcontrol", translate_dependent_launch},
};

}  // namespace

std::span<const Opcode> control_opcodes() { return kOpcodes; }

Operation end_of_kernel(FrameLayout& frame) { return {.execute = &end_threads, .guard = frame.of_true()}; }

}  // namespace gradring::simulated_gpu
