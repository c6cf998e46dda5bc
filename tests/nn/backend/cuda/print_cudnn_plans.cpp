// SPDX-License-Identifier: Apache-2.0
// Prints what this machine's cuDNN plans for GPUs that need not be here (scripts/cudnn_plans.sh).
//
// Usage: print_cudnn_plans table|record
#include <cstdio>
#include <string_view>

#include "tests/nn/backend/cuda/cudnn_plan_table.h"
#include "tests/nn/backend/cuda/cudnn_record.h"

int main(int argc, char** argv) {
  using namespace gradring::tests;
  const std::string_view what = argc == 2 ? argv[1] : "";
  if (what != "table" && what != "record") {
    std::fputs("usage: print_cudnn_plans table|record\n", stderr);
    return 2;
  }
  if (const auto why = DevicelessCudnn::missing()) {
    std::fprintf(stderr, "print_cudnn_plans: %s\n", why->c_str());
    return 1;
  }
  std::fputs((what == "table" ? cudnn_plan_document() : CudnnRecord::ask().text()).c_str(), stdout);
  return 0;
}
