// SPDX-License-Identifier: Apache-2.0
#include "comm/channel.h"

#include <exception>

#include "kernels/base/error.h"

namespace gradring::comm {

void Channel::fail_together(Channel& one, Channel& other, FirstFailure& first) {
  for (Channel* const channel : {&one, &other}) {
    channel->first_ = &first;
    channel->other_ = channel == &one ? &other : &one;
    channel->transport_->share_failure(first);
  }
}

Channel::Use::Use(Channel& channel, std::string_view advice) : channel_(channel) {
  if (!channel_.in_use_.exchange(true)) return;
  // Or another thread announces a failure.
  if (const auto* const cause = channel_.first_ ? channel_.first_->cause() : nullptr)
    std::rethrow_exception(cause->error);
  check(false, advice);
}

Channel::Use::~Use() {
  channel_.in_use_.store(false);
  // After the store: a thread that failed before it found this channel in use, and left the announcement to this one.
  if (!channel_.first_ || !channel_.first_->cause()) return;
  channel_.announce_failure();
  channel_.other_->announce_failure();
}

/// Unless a thread uses the transport: that one does so in its next call, or when its use ends.
void Channel::announce_failure() {
  if (in_use_.exchange(true)) return;
  transport_->announce_failure();
  in_use_.store(false);
}

}  // namespace gradring::comm
