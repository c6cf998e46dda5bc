// SPDX-License-Identifier: Apache-2.0
// What PyTorch itself reads and writes is in tests/train/app/commands/torch_round_trip_test.cpp.
#include "train/records/checkpoint/torch_optimizer.h"

#include <gmock/gmock.h>

#include <functional>

#include "tests/train/records/checkpoint/tensors.h"
#include "tests/train/support/memory_disk.h"
#include "train/records/checkpoint/pickle.h"
#include "train/records/checkpoint/pt_archive.h"

namespace gradring::train {
namespace {

using testing::HasSubstr;

TorchOptimizer two_groups() {
  TorchOptimizer optimizer;
  optimizer.groups = {{{{"lr", 0.1}, {"betas", std::vector{0.9, 0.999}}, {"amsgrad", false}, {"foreach", {}}}, {0, 2}},
                      {{{"lr", 1e-300}, {"count", std::int64_t{-3}}}, {1}}};
  optimizer.state[0] = {counting("step", TensorType::f32, {}), counting("exp_avg", TensorType::f32, {2, 3})};
  optimizer.state[1] = {counting("exp_avg", TensorType::f32, {3})};
  return optimizer;
}

TEST(TorchOptimizer, ComesBackAsItWasWritten) {
  tests::MemoryDisk disk;
  write_torch_optimizer(disk, "/a", two_groups(), "{}");
  const TorchOptimizer read = read_torch_optimizer(disk, "/a");
  ASSERT_EQ(read.groups.size(), 2u);
  EXPECT_EQ(read.groups[0].options, two_groups().groups[0].options);
  EXPECT_EQ(read.groups[1].options, two_groups().groups[1].options);
  EXPECT_EQ(read.groups[0].parameters, (std::vector<std::int64_t>{0, 2}));
  EXPECT_EQ(read.state, two_groups().state);
  EXPECT_EQ(to_string(read.groups[0].options[1].second), "(0.9, 0.999)");
}

/// The refusal of a file whose dictionary holds `state` and `groups`.
std::string refusal_of(const std::function<void(PickleWriter&)>& state,
                       const std::function<void(PickleWriter&)>& groups) {
  PickleWriter pickle;
  pickle.empty_dict();
  pickle.mark();
  pickle.text("state");
  state(pickle);
  pickle.text("param_groups");
  groups(pickle);
  pickle.end_items();
  tests::MemoryDisk disk;
  write_pt_archive(disk, "/a", pickle.finish(), {});
  return refusal([&] { read_torch_optimizer(disk, "/a"); });
}

void no_state(PickleWriter& pickle) { pickle.empty_dict(); }
void no_groups(PickleWriter& pickle) { pickle.empty_list(); }

TEST(TorchOptimizer, RejectsOtherForms) {
  EXPECT_EQ(refusal_of(no_state, no_groups), "");
  EXPECT_THAT(refusal_of(no_groups, no_groups), HasSubstr("'state' and 'param_groups'"));
  const auto in_list = [](const std::function<void(PickleWriter&)>& item) {
    return [item](PickleWriter& pickle) {
      pickle.empty_list();
      pickle.mark();
      item(pickle);
      pickle.end_appends();
    };
  };
  EXPECT_THAT(refusal_of(no_state, in_list(no_state)), HasSubstr("without a list 'params'"));
  EXPECT_THAT(refusal_of(no_state, in_list([](PickleWriter& pickle) { pickle.integer(1); })), HasSubstr("'params'"));
  const auto state_of = [](std::int64_t number, const std::function<void(PickleWriter&)>& value) {
    return [number, value](PickleWriter& pickle) {
      pickle.empty_dict();
      pickle.mark();
      for (int i = 0; i < 2; ++i) {
        pickle.integer(number);
        value(pickle);
      }
      pickle.end_items();
    };
  };
  EXPECT_THAT(refusal_of(state_of(7, no_state), no_groups), HasSubstr("state of parameter 7 twice"));
  EXPECT_THAT(refusal_of(state_of(-1, no_state), no_groups), HasSubstr("0 to 999,999"));
  EXPECT_THAT(refusal_of(state_of(1, no_groups), no_groups), HasSubstr("not a dictionary"));
  tests::MemoryDisk disk;
  write_pt_archive(disk, "/a", PickleWriter().finish(), {});
  EXPECT_NE(refusal([&] { read_torch_optimizer(disk, "/a"); }), "");
}

}  // namespace
}  // namespace gradring::train
