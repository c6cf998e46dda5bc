// SPDX-License-Identifier: Apache-2.0
// atom, red: lane by lane, as atomics of the host, so that blocks on other threads see them whole.
#include <atomic>

#include "kernels/simulated_gpu/machine/operations/access.h"
#include "kernels/simulated_gpu/machine/operations/floating_point.h"
#include "kernels/simulated_gpu/machine/operations/handlers.h"
#include "kernels/simulated_gpu/machine/operations/operations.h"

namespace gradring::simulated_gpu {
namespace {

using ptx::Type;

struct Add {
  template <class T>
  T operator()(T old, T b) const {
    return static_cast<T>(old + b);
  }
};

struct And {
  template <class T>
  T operator()(T old, T b) const {
    return old & b;
  }
};

struct Or {
  template <class T>
  T operator()(T old, T b) const {
    return old | b;
  }
};

struct Xor {
  template <class T>
  T operator()(T old, T b) const {
    return old ^ b;
  }
};

struct Exchange {
  template <class T>
  T operator()(T, T b) const {
    return b;
  }
};

/// inc: wraps to 0 behind b; dec: wraps to b behind 0.
struct Increment {
  std::uint32_t operator()(std::uint32_t old, std::uint32_t b) const { return old >= b ? 0 : old + 1; }
};

struct Decrement {
  std::uint32_t operator()(std::uint32_t old, std::uint32_t b) const { return old == 0 || old > b ? b : old - 1; }
};

template <class F, class T>
void update(const Operation& operation, Warp& warp, Mask active) {
  const auto& details = *static_cast<const AccessDetails*>(operation.details);
  Addresses addresses = addresses_of(details.address, warp, active);
  resolve(operation, warp, active, details.space, Access::atomic, details.bytes, addresses);
  T* const d = warp.row<T>(operation.d);
  const T* const b = warp.row<T>(operation.b);
  for_each_lane(active, [&](unsigned lane) {
    const std::atomic_ref<T> value(*reinterpret_cast<T*>(addresses.lane[lane]));
    T old = value.load();
    while (!value.compare_exchange_weak(old, F{}(old, b[lane]))) {
    }
    d[lane] = old;
  });
}

template <class T>
void compare_and_swap(const Operation& operation, Warp& warp, Mask active) {
  const auto& details = *static_cast<const AccessDetails*>(operation.details);
  Addresses addresses = addresses_of(details.address, warp, active);
  resolve(operation, warp, active, details.space, Access::atomic, details.bytes, addresses);
  T* const d = warp.row<T>(operation.d);
  const T* const expected = warp.row<T>(operation.b);
  const T* const desired = warp.row<T>(operation.c);
  for_each_lane(active, [&](unsigned lane) {
    T old = expected[lane];
    std::atomic_ref<T>(*reinterpret_cast<T*>(addresses.lane[lane])).compare_exchange_strong(old, desired[lane]);
    d[lane] = old;
  });
}

template <class F>
Handler of_words(Decoder& decoder, Type type) {
  return choose_type<std::uint32_t, std::uint64_t>(decoder, bits_of(type), []<class T> { return &update<F, T>; });
}

template <class F>
Handler of_integers(Decoder& decoder, Type type) {
  return choose_type<std::uint32_t, std::int32_t, std::uint64_t, std::int64_t>(decoder, type,
                                                                               []<class T> { return &update<F, T>; });
}

Handler handler_of(Decoder& decoder, std::size_t function, Type type) {
  switch (function) {
    case 0:
      if (type == Type::f32 || type == Type::f64)
        return choose_type<float, double>(decoder, type, []<class T> { return &update<Add, T>; });
      return of_words<Add>(decoder, type);
    case 1: return of_integers<IntegerMinimum>(decoder, type);
    case 2: return of_integers<IntegerMaximum>(decoder, type);
    case 3: return of_words<And>(decoder, type);
    case 4: return of_words<Or>(decoder, type);
    case 5: return of_words<Xor>(decoder, type);
    case 6: return of_words<Exchange>(decoder, type);
    case 7: return choose_type<std::uint32_t>(decoder, type, []<class T> { return &update<Increment, T>; });
    case 8: return choose_type<std::uint32_t>(decoder, type, []<class T> { return &update<Decrement, T>; });
    case 9:
      return choose_type<std::uint32_t, std::uint64_t>(decoder, bits_of(type),
                                                       []<class T> { return &compare_and_swap<T>; });
    default: decoder.reject("the function is not known");
  }
}

template <bool kReturns>
void translate_atomic(Decoder& decoder, Operation& operation) {
  for (const std::string_view word : {"relaxed", "acquire", "release", "acq_rel", "cta", "cluster", "gpu", "sys"})
    decoder.take(word);
  const StateSpace space = take_state_space(decoder);
  if (space == StateSpace::param || space == StateSpace::local) decoder.reject("the state space has no atomics");
  constexpr std::size_t kCompareAndSwap = 9;
  const std::size_t function =
      decoder.take_one_of({"add", "min", "max", "and", "or", "xor", "exch", "inc", "dec", "cas"});
  const Type type = decoder.take_type();
  operation.execute = handler_of(decoder, function, type);
  const std::size_t address = kReturns ? 1 : 0;
  decoder.finish(address + (function == kCompareAndSwap ? 3 : 2));
  operation.d = kReturns ? decoder.destination(0, type) : decoder.frame().of_sink();
  decode_access(decoder, operation, decoder.operand(address),
                {.space = space, .bytes = static_cast<unsigned>(bytes_of(type))});
  operation.b = decoder.source(address + 1, type);
  if (function == kCompareAndSwap) operation.c = decoder.source(address + 2, type);
}

constexpr Opcode kOpcodes[] = {{"atom", translate_atomic<true>}, {"red", translate_atomic<false>}};

}  // namespace

std::span<const Opcode> atomic_opcodes() { return kOpcodes; }

}  // namespace gradring::simulated_gpu
