// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdio>
#include <memory>
#include <string_view>

#include "train/report/metrics_sink.h"

namespace gradring::train {

/// How far the run is, for a person at `out`. `style` is bar (one line that is drawn again and again), plain (a line now and
/// then, for logs), none, or auto: a bar where `out` is a terminal, plain lines elsewhere.
std::unique_ptr<MetricsSink> make_progress(std::string_view style, std::FILE* out);

}  // namespace gradring::train
