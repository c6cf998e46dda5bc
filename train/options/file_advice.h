// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace gradring::train {

/// What to do about `error` (errno) of a call that opens or writes a file: remove its cause if the user can, or "choose
/// another <other>".
std::string advice_on(int error, std::string_view other);

}  // namespace gradring::train
