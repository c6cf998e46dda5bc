// SPDX-License-Identifier: Apache-2.0
// What one agent of `gradring launch` receives from another: lines of JSON, and the messages in them.
#include <sys/socket.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "tests/fuzz/fuzz_target.h"
#include "train/launch/nodes/message.h"
#include "train/launch/nodes/node_link.h"

using namespace gradring::train;

namespace {

/// Every reader, whatever the message says that it is.
void read(const nlohmann::json& message) {
  const auto try_to = [&message](auto reader) {
    try {
      reader(message);
    } catch (const MessageError&) {
    }
  };
  try_to(kind_of);
  try_to(join_request_in);
  try_to(start_in);
  try_to(exit_in);
  try_to(signal_in);
  try_to(entry_in);
  try_to(finish_in);
  try_to(refusal_in);
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) std::abort();
  NodeLink link{gradring::UniqueFd(ends[0])};
  gradring::UniqueFd peer(ends[1]);
  if (::send(peer.get(), data, size, MSG_DONTWAIT) != static_cast<ssize_t>(size)) std::abort();
  peer.reset();
  while (link.open())
    for (const nlohmann::json& message : link.receive()) read(message);
  return 0;
}
