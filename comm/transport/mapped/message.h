// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "comm/transport/mapped/control_block.h"

namespace gradring::comm {

void set_operation(MessageHeader& header, std::string_view operation);

/// Whether what one rank sent is what the other expects: the same step of the same collective on the same range.
bool belong_together(const MessageHeader& sent, const MessageHeader& expected);

/// The two sides of a Desync, in words.
std::string describe_mismatch(int rank, const MessageHeader& expected, int peer, const MessageHeader& sent);

}  // namespace gradring::comm
