// SPDX-License-Identifier: Apache-2.0
#include "train/report/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include "train/report/bar_progress.h"
#include "train/report/plain_progress.h"

namespace gradring::train {
namespace {

/// Shows nothing but what is wrong.
class NoProgress final : public MetricsSink {
 public:
  void step(const StepRecord&) override {}
  void eval(const EvalRecord&) override {}
  void remark(const std::string& text) override { fmt::print(stderr, "gradring train: {}\n", text); }
};

}  // namespace

std::unique_ptr<MetricsSink> make_progress(std::string_view style, std::FILE* out) {
  if (style == "none") return std::make_unique<NoProgress>();
  if (style == "bar" || (style == "auto" && ::isatty(::fileno(out)))) return std::make_unique<BarProgress>(out);
  return std::make_unique<PlainProgress>([out](std::string_view line) {
    fmt::print(out, "{}\n", line);
    std::fflush(out);
  });
}

}  // namespace gradring::train
