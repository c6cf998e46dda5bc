// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <type_traits>

#include "comm/rendezvous/store.h"

namespace gradring::comm {

/// The messages between a TcpStore and a TcpStoreServer. A request is its header, the key and the value; an answer its
/// header and the value. Numbers are little-endian. A connection has one request at a time.

enum class StoreOperation : std::uint32_t { set = 1, wait = 2, add = 3, remove = 4 };

struct StoreRequest {
  StoreOperation operation{};
  std::uint32_t key_bytes = 0;
  std::uint32_t value_bytes = 0;  ///< 0 unless it is a set
  std::uint32_t zero = 0;
  std::int64_t number = 0;  ///< add: the increment; wait: for how many milliseconds, 0 for a get
};

enum class StoreStatus : std::uint32_t {
  ok = 0,
  unset = 1,    ///< at the end of a wait
  invalid = 2,  ///< InvalidArgument, with its message as value
  full = 3,     ///< as many entries or bytes as the server keeps
};

struct StoreAnswer {
  StoreStatus status{};
  std::uint32_t value_bytes = 0;
  std::int64_t number = 0;  ///< of add: the sum
};

static_assert(sizeof(StoreRequest) == 24 && std::has_unique_object_representations_v<StoreRequest>);
static_assert(sizeof(StoreAnswer) == 16 && std::has_unique_object_representations_v<StoreAnswer>);

/// Whether a server reads the rest of this request: checked before anything is allocated.
inline bool is_valid(const StoreRequest& request) {
  const bool known = request.operation >= StoreOperation::set && request.operation <= StoreOperation::remove;
  const std::uint32_t most = request.operation == StoreOperation::set ? Store::kMaxValueBytes : 0;
  return known && request.key_bytes >= 1 && request.key_bytes <= Store::kMaxKeyBytes && request.value_bytes <= most &&
         request.zero == 0;
}

/// Whether a client reads the rest of this answer.
inline bool is_valid(const StoreAnswer& answer) {
  return answer.status <= StoreStatus::full && answer.value_bytes <= Store::kMaxValueBytes;
}

}  // namespace gradring::comm
