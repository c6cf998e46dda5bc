// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "data/fetch/listener.h"
#include "train/report/console.h"

namespace gradring::train {

/// Tells a person at `out` how far a fetch is: a line for each file and each failed address, and where `out` is a terminal a
/// last line that is drawn again and again. `out` must outlive it.
std::unique_ptr<data::FetchListener> make_fetch_progress(Console& out);

}  // namespace gradring::train
