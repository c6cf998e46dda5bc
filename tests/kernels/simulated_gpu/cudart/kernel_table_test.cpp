// SPDX-License-Identifier: Apache-2.0
#include "kernels/simulated_gpu/cudart/kernel_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "kernels/base/error.h"
#include "kernels/simulated_gpu/cards/card.h"
#include "tests/kernels/simulated_gpu/cudart/registered_kernels.h"

namespace gradring::tests {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::string nothing_for(const std::string& target) {
  return ".version 8.0\n.target " + target + "\n.address_size 64\n.visible .entry nothing() {\n ret;\n}\n";
}

TEST(KernelTable, ReportsKernelsForNewerCardsAlone) {
  simulated_gpu::KernelTable table;
  const RegisteredKernels newer({{90, nothing_for("sm_90")}});
  const auto& a100 = *simulated_gpu::find_card("a100");
  EXPECT_NO_THROW(table.check_card(a100)) << "a program without kernels";
  table.add_binary(newer.wrapper());
  EXPECT_NO_THROW(table.check_card(*simulated_gpu::find_card("h100")));
  try {
    table.check_card(a100);
    FAIL() << "no kernel could be launched";
  } catch (const InvalidArgument& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("no PTX for a100, whose compute capability is 8.0, but for 9.0"),
                                    HasSubstr("build it with CUDAARCHS='80;90'")));
  }
  const RegisteredKernels both({{90, nothing_for("sm_90")}, {80, nothing_for("sm_80")}});
  table.add_binary(both.wrapper());
  EXPECT_NO_THROW(table.check_card(a100));
}

}  // namespace
}  // namespace gradring::tests
