// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "comm/transport/tcp/handshake.h"
#include "train/launch/launcher.h"
#include "train/launch/nodes/message.h"

namespace gradring::train {

enum class NodePart { leads, follows };

/// What this agent proves to the others.
comm::tcp::Identity identity_of(const LaunchOptions& options, NodePart part);

/// What it brings.
NodeOffer offer_of(const LaunchOptions& options);

}  // namespace gradring::train
