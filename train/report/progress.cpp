// SPDX-License-Identifier: Apache-2.0
#include "train/report/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include "kernels/runtime/write_all.h"
#include "train/report/bar_progress.h"
#include "train/report/plain_progress.h"

namespace gradring::train {
namespace {

/// Shows nothing but what is wrong.
class NoProgress final : public MetricsSink {
 public:
  void step(const StepRecord&) override {}
  void eval(const EvalRecord&) override {}
  void remark(const std::string& text) override { print_to_stderr(fmt::format("gradring train: {}\n", text)); }
};

}  // namespace

std::unique_ptr<MetricsSink> make_progress(std::string_view style, Console& out) {
  if (style == "none") return std::make_unique<NoProgress>();
  if (style == "bar" || (style == "auto" && ::isatty(out.fd()))) return std::make_unique<BarProgress>(out);
  return std::make_unique<PlainProgress>([&out](std::string_view line) { out.write(fmt::format("{}\n", line)); });
}

}  // namespace gradring::train
