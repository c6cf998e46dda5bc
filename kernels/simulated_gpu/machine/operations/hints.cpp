// SPDX-License-Identifier: Apache-2.0
// What changes no value here: nanosleep, prefetch, createpolicy, discard, applypriority, setmaxnreg, pmevent; brkpt.
#include "kernels/simulated_gpu/machine/block.h"
#include "kernels/simulated_gpu/machine/operations/handlers.h"
#include "kernels/simulated_gpu/machine/operations/operations.h"

namespace gradring::simulated_gpu {
namespace {

using ptx::Type;

void do_nothing(const Operation&, Warp&, Mask) {}

/// The virtual clock of the block goes on, so that a loop that waits for a time ends; other threads go first.
void sleep(const Operation& operation, Warp& warp, Mask active) {
  warp.block().clock().advance(warp.row<std::uint32_t>(operation.a)[lowest_lane(active)]);
  warp.give_way();
}

void stop(const Operation& operation, Warp& warp, Mask active) {
  warp.fail(operation, lowest_lane(active), "brkpt, and no debugger is there", FindingKind::trap);
}

void translate_nanosleep(Decoder& decoder, Operation& operation) {
  if (decoder.take_type() != Type::u32) decoder.reject("type u32 is expected");
  decoder.finish(1);
  operation.a = decoder.source(0, Type::u32);
  operation.execute = &sleep;
}

/// Addresses are decoded, and not looked at: a prefetch of what is no memory is no fault.
void translate_prefetch(Decoder& decoder, Operation& operation) {
  decoder.take_one_of({"global", "local", "param", "const"});
  if (decoder.take_one_of({"L1", "L2", "L2::evict_last", "L2::evict_normal", "tensormap"}) > 4)
    decoder.reject("a level of the caches is expected");
  decoder.finish(1);
  decoder.address(decoder.operand(0));
  operation.execute = &do_nothing;
}

/// discard.global.L2 [a], 128; applypriority.global.L2::evict_normal [a], 128
void translate_cache_line(Decoder& decoder, Operation& operation) {
  decoder.take("global");
  if (decoder.take_one_of({"L2", "L2::evict_normal"}) > 1) decoder.reject("a level of the caches is expected");
  decoder.finish(2);
  decoder.address(decoder.operand(0));
  operation.execute = &do_nothing;
}

/// createpolicy.fractional.L2::evict_first.b64 policy, 1.0: no instruction asks what the policy says.
void translate_policy(Decoder& decoder, Operation& operation) {
  while (!decoder.next().empty() && decoder.next() != "b64") decoder.take(decoder.next());
  if (decoder.take_type() != Type::b64) decoder.reject("type b64 is expected");
  operation.d = decoder.destination(0, Type::b64);
  operation.execute = [](const Operation& self, Warp& warp, Mask active) {
    for_each_lane(active, [&](unsigned lane) { warp.row<std::uint64_t>(self.d)[lane] = 0; });
  };
}

/// Registers of a warp are as many as it needs here.
void translate_setmaxnreg(Decoder& decoder, Operation& operation) {
  if (decoder.take_one_of({"inc", "dec"}) > 1 || !decoder.take("sync") || !decoder.take("aligned") ||
      decoder.take_type() != Type::u32)
    decoder.reject("expected .inc or .dec, and .sync.aligned.u32");
  decoder.finish(1);
  const std::uint64_t count = decoder.constant(decoder.operand(0));
  if (count < 24 || count > 256 || count % 8 != 0)
    decoder.reject(joined(count, " registers; expected a multiple of 8 from 24 to 256"));
  operation.execute = [](const Operation& self, Warp& warp, Mask active) { is_whole_warp(self, warp, active); };
}

void translate_pmevent(Decoder& decoder, Operation& operation) {
  decoder.take("mask");
  decoder.finish(1);
  operation.execute = &do_nothing;
}

void translate_brkpt(Decoder& decoder, Operation& operation) {
  decoder.finish(0);
  operation.execute = &stop;
}

constexpr Opcode kOpcodes[] = {
    {"nanosleep", translate_nanosleep},   {"prefetch", translate_prefetch},        {"prefetchu", translate_prefetch},
    {"discard", translate_cache_line},    {"applypriority", translate_cache_line}, {"createpolicy", translate_policy},
    {"setmaxnreg", translate_setmaxnreg}, {"pmevent", translate_pmevent},          {"brkpt", translate_brkpt},
};

}  // namespace

std::span<const Opcode> hint_opcodes() { return kOpcodes; }

}  // namespace gradring::simulated_gpu
