// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string_view>

#include "train/report/console.h"
#include "train/report/metrics_sink.h"

namespace gradring::train {

/// How far the run is, for a person at `out`. `style` is bar (one line that is drawn again and again), plain (a line now and
/// then, for logs), none, or auto: a bar where `out` is a terminal, plain lines elsewhere. `out` must outlive it.
std::unique_ptr<MetricsSink> make_progress(std::string_view style, Console& out);

}  // namespace gradring::train
