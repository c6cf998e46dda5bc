// SPDX-License-Identifier: Apache-2.0
// What a module says outside of its kernels' bodies, and how it gives them out.
#include "kernels/simulated_gpu/ptx/module.h"

#include <gmock/gmock.h>

#include <cstring>
#include <thread>

#include "kernels/simulated_gpu/ptx/error.h"

namespace gradring::ptx {
namespace {

using testing::ElementsAre;

TEST(Module, HasVersionTargetAndFiles) {
  const Module module(R"(
    // as nvcc writes it
    .version 8.7
    .target sm_90a, texmode_independent
    .address_size 64
    .file 2 "folder/b.h", 1700000000, 4096
    .file 1 "folder/a.cu"
    .section .debug_str
    {
    $L__info_string0:
    .b8 95,90,0
    })");
  EXPECT_EQ(module.version(), "8.7");
  EXPECT_EQ(module.target(), "sm_90a");
  EXPECT_THAT(module.files(), ElementsAre("", "folder/a.cu", "folder/b.h"));
  EXPECT_THAT(module.kernel_names(), ElementsAre());
}

TEST(Module, FindsKernelsByName) {
  const Module module(R"(.version 9.0 .target sm_90 .address_size 64
    .extern .func (.param .b32 func_retval0) vprintf (.param .b64 a, .param .b64 b);
    .func helper() { ret; }
    .entry first() { /* } */ // }
      .pragma "}"; ret; }
    .visible .entry second { { ret; } })");
  EXPECT_THAT(module.kernel_names(), ElementsAre("first", "second"));
  ASSERT_NE(module.kernel("first"), nullptr);
  EXPECT_EQ(module.kernel("first")->code.size(), 1);
  EXPECT_EQ(module.kernel("second")->code.size(), 1);
  EXPECT_EQ(module.kernel("helper"), nullptr);
  EXPECT_EQ(module.kernel("third"), nullptr);
}

TEST(Module, LaysParametersOut) {
  const Module module(R"(.version 9.0 .target sm_90 .address_size 64
    .entry k(.param .u8 flag, .param .align 64 .b8 map[128], .param .u32 count, .param .u64 .ptr .global .align 32 to,
             .param .align 4 .b8 extents[12])
    .maxntid 16, 8, 2
    .minnctapersm 2
    { ret; })");
  const Kernel& kernel = *module.kernel("k");
  ASSERT_EQ(kernel.parameters.size(), 5);
  const std::size_t offsets[] = {0, 64, 192, 200, 208}, bytes[] = {1, 128, 4, 8, 12}, alignments[] = {1, 64, 4, 8, 4};
  for (std::size_t i = 0; i < 5; ++i) {
    SCOPED_TRACE(kernel.parameters[i].name);
    EXPECT_EQ(kernel.parameters[i].offset, offsets[i]);
    EXPECT_EQ(kernel.parameters[i].bytes, bytes[i]);
    EXPECT_EQ(kernel.parameters[i].alignment, alignments[i]);
  }
  EXPECT_EQ(kernel.parameters[3].name, "to");
  EXPECT_EQ(kernel.parameter_bytes, 220);
  EXPECT_EQ(kernel.most_threads, 256);
}

TEST(Module, KnowsGlobalVariables) {
  const Module module(R"(.version 9.0 .target sm_90 .address_size 64
    .visible .global .align 8 .b8 counters[16];
    .const .align 4 .f32 weights[2][3] = {0f3F800000, 0f40000000};
    .global .u32 seed = 7;
    .entry k() { .reg .b64 %rd<2>; mov.u64 %rd1, weights+8; ret; })");
  const Operand& used = module.kernel("k")->code[0].operands[1];
  EXPECT_EQ(used.kind, Operand::Kind::symbol);
  EXPECT_EQ(used.name, "weights");
  EXPECT_EQ(used.offset, 8);
}

TEST(Module, ReadsInitialValues) {
  const Module module(R"(.version 9.0 .target sm_90 .address_size 64
    .const .align 4 .f32 weights[2][3] = {{0f3F800000, 0f40000000}, {-0.5}};
    .global .align 8 .u64 table[4] = {generic(weights)+4, 3, counter, generic(counter)};
    .global .attribute(.managed) .align 4 .s32 counter = -2;
    .extern .global .align 4 .b8 elsewhere[12];
    .entry k() { ret; })");
  const auto& variables = module.variables();
  ASSERT_EQ(variables.size(), 4);
  EXPECT_TRUE(variables[0].is_constant);
  EXPECT_EQ(variables[0].bytes, 24);
  const float weights[3] = {1, 2, -0.5F};
  ASSERT_EQ(variables[0].initial.size(), sizeof weights);
  EXPECT_EQ(std::memcmp(variables[0].initial.data(), weights, sizeof weights), 0);
  const auto& references = variables[1].references;
  ASSERT_EQ(references.size(), 3);
  EXPECT_EQ(references[0].name, "weights");
  EXPECT_EQ(references[0].offset, 4);
  EXPECT_EQ(references[1].at, 16);
  EXPECT_EQ(references[2].at, 24);
  EXPECT_TRUE(variables[2].is_managed);
  EXPECT_EQ(variables[2].initial[3], std::byte{0xff});
  EXPECT_TRUE(variables[3].is_extern);
  EXPECT_EQ(module.variable_named("counter"), 2);
  EXPECT_EQ(module.variable_named("none"), std::nullopt);
}

TEST(Module, ReadsAKernelWhenItIsAskedFor) {
  Module module(R"(.version 9.0 .target sm_90 .address_size 64
    .entry bad() { add.s32 %r1, %r2, %r3; }
    .entry good() { ret; })");
  const Kernel* const good = module.kernel("good");
  ASSERT_NE(good, nullptr);
  EXPECT_THROW(module.kernel("bad"), PtxError);
  EXPECT_THROW(module.kernel("bad"), PtxError);
  const Module moved = std::move(module);
  EXPECT_EQ(moved.kernel("good"), good);
}

TEST(Module, GivesAllThreadsTheSameKernels) {
  std::string text = ".version 9.0 .target sm_90 .address_size 64";
  for (int i = 0; i < 50; ++i) text += " .entry k" + std::to_string(i) + "() { ret; }";
  const Module module(text);
  const auto names = module.kernel_names();
  ASSERT_EQ(names.size(), 50);
  std::vector<std::vector<const Kernel*>> seen(4);
  {
    std::vector<std::jthread> threads;
    for (auto& kernels : seen)
      threads.emplace_back([&] {
        for (const auto name : names) kernels.push_back(module.kernel(name));
      });
  }
  for (std::size_t i = 0; i < names.size(); ++i) EXPECT_EQ(seen[0][i]->name, names[i]);
  for (const auto& kernels : seen) EXPECT_EQ(kernels, seen[0]);
}

TEST(Type, HasNameAndSize) {
  for (const auto& [name, bytes] : {std::pair{"b8", 1}, {"u16", 2}, {"bf16", 2}, {"s32", 4}, {"f64", 8}, {"pred", 0}}) {
    EXPECT_EQ(name_of(type_named(name)), name);
    EXPECT_EQ(bytes_of(type_named(name)), bytes);
  }
  EXPECT_EQ(type_named("b128"), Type::none);
}

}  // namespace
}  // namespace gradring::ptx
