// SPDX-License-Identifier: Apache-2.0
// Bodies of kernels: each form of the syntax, by hand.
#include <gmock/gmock.h>

#include "kernels/simulated_gpu/ptx/module.h"
#include "tests/kernels/simulated_gpu/ptx/one_kernel.h"

namespace gradring::ptx {
namespace {

using testing::ElementsAre;
using tests::one_kernel;

std::string hexadecimal(std::uint64_t value) {
  std::ostringstream text;
  text << std::hex << value;
  return text.str();
}

/// "b32#0" for the first register that is used, "[pointer+8]", "{f32#1,_}", ">3" for a label at instruction 3.
std::string show(const Kernel& kernel, const Operand& operand) {
  const std::string offset = operand.offset == 0 ? "" : "+" + std::to_string(operand.offset);
  std::string parts;
  for (const Operand& part : operand.parts) parts += (parts.empty() ? "" : ",") + show(kernel, part);
  switch (operand.kind) {
    case Operand::Kind::reg:
      return (operand.negated ? "!" : "") + std::string(name_of(kernel.registers.at(operand.reg))) + "#" +
             std::to_string(operand.reg);
    case Operand::Kind::immediate:
      return (operand.is_double ? "0d" : operand.is_float ? "0f" : "0x") + hexadecimal(operand.bits);
    case Operand::Kind::special: return std::string(operand.name);
    case Operand::Kind::parameter:
    case Operand::Kind::function:
    case Operand::Kind::symbol: return std::string(operand.name) + offset;
    case Operand::Kind::address: return "[" + parts + offset + "]";
    case Operand::Kind::vector: return "{" + parts + "}";
    case Operand::Kind::pair: return "(" + parts + ")";
    case Operand::Kind::label: return ">" + std::to_string(operand.target);
    case Operand::Kind::sink: return "_";
  }
  return "?";
}

std::string show(const Kernel& kernel, const Instruction& instruction) {
  std::string text;
  if (instruction.guard)
    text = (instruction.guard->negated ? "@!" : "@") +
           std::string(name_of(kernel.registers.at(instruction.guard->reg))) + "#" +
           std::to_string(instruction.guard->reg) + " ";
  text += instruction.opcode;
  for (const Operand& operand : instruction.operands) text += " " + show(kernel, operand);
  return text;
}

std::vector<std::string> show_code(const std::string& body, const std::string& before = "") {
  const Module module(one_kernel(body, before));
  const Kernel& kernel = *module.kernel("k");
  std::vector<std::string> lines;
  for (const Instruction& instruction : kernel.code) lines.push_back(show(kernel, instruction));
  return lines;
}

struct Form {
  const char* text;
  const char* read;
};

class Forms : public testing::TestWithParam<Form> {};

TEST_P(Forms, AreRead) {
  EXPECT_THAT(show_code(".reg .pred %p<9>; .reg .b16 %rs<9>; .reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .f32 %f<9>;"
                        ".reg .f64 %fd<9>;" +
                        std::string(GetParam().text)),
              ElementsAre(GetParam().read));
}

INSTANTIATE_TEST_SUITE_P(
    OfInstructions, Forms,
    testing::Values(
        Form{"ret;", "ret"},  //
        Form{"add.s32 %r3, %r1, %r3;", "add.s32 b32#0 b32#1 b32#0"},
        Form{"@%p1 st.global.f32 [%rd1], %f1;", "@pred#0 st.global.f32 [b64#1] f32#2"},
        Form{"@!%p1\tcp.async.commit_group ;", "@!pred#0 cp.async.commit_group"},
        Form{"ld.global.nc.v4.u16 {%rs1, %rs2, _, %rs3}, [%rd1+-64];",
             "ld.global.nc.v4.u16 {b16#0,b16#1,_,b16#2} [b64#3+-64]"},
        Form{"ld.param.u32 %r1, [count];", "ld.param.u32 b32#0 [count]"},
        Form{"ld.param.u8 %rs1, [pointer+4+2-1];", "ld.param.u8 b16#0 [pointer+5]"},
        Form{"st.shared.u32 [16], %r1;", "st.shared.u32 [0x10] b32#0"},
        Form{"mov.u64 %rd1, pointer;", "mov.u64 b64#0 pointer"},
        Form{"mov.u32 %r1, %nctaid.z;", "mov.u32 b32#0 %nctaid.z"},
        Form{"mov.u32 %r1, %laneid;", "mov.u32 b32#0 %laneid"}, Form{"mov.u32 %r1, WARP_SZ;", "mov.u32 b32#0 WARP_SZ"},
        Form{"mov.u32 %r1, 4294967295U;", "mov.u32 b32#0 0xffffffff"}, Form{"mov.u32 %r1, 0x1F;", "mov.u32 b32#0 0x1f"},
        Form{"mov.u32 %r1, 017;", "mov.u32 b32#0 0xf"}, Form{"mov.u32 %r1, 0b101;", "mov.u32 b32#0 0x5"},
        Form{"mov.b64 %rd1, -9223372036854775808;", "mov.b64 b64#0 0x8000000000000000"},
        Form{"add.s32 %r1, %r1, -1;", "add.s32 b32#0 b32#0 0xffffffffffffffff"},
        Form{"mov.f32 %f1, 0f3F800000;", "mov.f32 f32#0 0f3f800000"},
        Form{"mov.f32 %f1, 0fFf800000;", "mov.f32 f32#0 0fff800000"},
        Form{"mov.f64 %fd1, 0d3FF0000000000000;", "mov.f64 f64#0 0d3ff0000000000000"},
        Form{"mov.f64 %fd1, -1.5;", "mov.f64 f64#0 0dbff8000000000000"},
        Form{"mov.f64 %fd1, 5e-1;", "mov.f64 f64#0 0d3fe0000000000000"},
        Form{"setp.lt.and.f32 %p1|%p2, %f1, %f2, !%p3;", "setp.lt.and.f32 (pred#0,pred#1) f32#2 f32#3 !pred#4"},
        Form{"shfl.sync.bfly.b32 %r1|%p1, %r2, 16, 31, -1;",
             "shfl.sync.bfly.b32 (b32#0,pred#1) b32#2 0x10 0x1f 0xffffffffffffffff"},
        Form{"mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r1], %r2;",
             "mbarrier.arrive.expect_tx.shared::cta.b64 _ [b32#0] b32#1"},
        Form{"cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd1, {%r2, %r3}], "
             "[%r4];",
             "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [b32#0] "
             "[b64#1,b32#2,b32#3] [b32#4]"},
        Form{"wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1, %f2, %f3, %f4}, %rd1, %rd2, %p1, 1, -1, 0, 1;",
             "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {f32#0,f32#1,f32#2,f32#3} b64#4 b64#5 pred#6 0x1 "
             "0xffffffffffffffff 0x0 0x1"},
        Form{"{ cvt.rn.f16.f32 %rs1, %f1;}\n", "cvt.rn.f16.f32 b16#0 f32#1"}, Form{"/* a\n; */ ret // ;\n;", "ret"}));

TEST(Kernel, SplitsOpcodes) {
  const Module module(one_kernel("st.shared::cta.v2.f32 [16], {1.0, 2.0};"));
  const Instruction& instruction = module.kernel("k")->code.at(0);
  EXPECT_EQ(instruction.opcode, "st.shared::cta.v2.f32");
  EXPECT_THAT(instruction.words, ElementsAre("st", "shared::cta", "v2", "f32"));
  EXPECT_TRUE(instruction.has("shared::cta"));
  EXPECT_FALSE(instruction.has("shared"));
}

TEST(Kernel, KeepsTextFromGuardToSemicolon) {
  const Module module(one_kernel(".reg .pred %p<2>; { @%p1\n bra L; }\nL: bar.sync \t0;"));
  const auto& code = module.kernel("k")->code;
  ASSERT_EQ(code.size(), 2);
  EXPECT_EQ(code[0].text, "@%p1\n bra L;");
  EXPECT_EQ(code[1].text, "bar.sync \t0;");
}

TEST(Kernel, ResolvesLabels) {
  EXPECT_THAT(show_code("L0: bra L2; L1: bra.uni L1; L2: L3: bra L0; bra end; end:"),
              ElementsAre("bra >2", "bra.uni >1", "bra >0", "bra >4"));
}

TEST(Kernel, FindsLabelsOfTheInnermostScope) {
  EXPECT_THAT(show_code("{ bra next; next: ret; } { bra next; ret; next: bra last; } last: next: bra next;"),
              ElementsAre("bra >1", "ret", "bra >4", "ret", "bra >5", "bra >5"));
}

TEST(Kernel, ReadsBranchTargets) {
  EXPECT_THAT(
      show_code(".reg .b32 %r<2>; $L_brx_0: .branchtargets $A, $B, $A; brx.idx %r1, $L_brx_0; $A: ret; $B: exit;"),
      ElementsAre("brx.idx b32#0 {>1,>2,>1}", "ret", "exit"));
}

TEST(Kernel, FindsRegistersOfTheInnermostScope) {
  EXPECT_THAT(show_code(".reg .b32 %tmp, p; .reg .f32 %r1<3>;"
                        "neg.s32 %tmp, %tmp;"
                        "{ .reg .b64 %tmp; .reg .pred p; @p neg.s64 %tmp, %tmp; { not.b64 %tmp, %tmp; } }"
                        "{ .reg .b64 %tmp; neg.s64 %tmp, %tmp; }"
                        "mov.b32 %tmp, p; neg.f32 %r10, %r12;"),
              ElementsAre("neg.s32 b32#0 b32#0", "@pred#1 neg.s64 b64#2 b64#2", "not.b64 b64#2 b64#2",
                          "neg.s64 b64#3 b64#3", "mov.b32 b32#0 b32#4", "neg.f32 f32#5 f32#6"));
}

TEST(Kernel, LaysSharedAndLocalMemoryOut) {
  const Module module(
      one_kernel(".local .align 16 .b8 depot[24]; .local .f64 x; .shared .align 2 .b8 a[3]; .shared .align 128 .b8 "
                 "b[256]; .shared .f32 c;"
                 "ret;"));
  const Kernel& kernel = *module.kernel("k");
  ASSERT_EQ(kernel.shared.size(), 3);
  EXPECT_EQ(kernel.shared[1].name, "b");
  EXPECT_EQ(kernel.shared[0].offset, 0);
  EXPECT_EQ(kernel.shared[1].offset, 128);
  EXPECT_EQ(kernel.shared[2].offset, 384);
  EXPECT_EQ(kernel.static_shared_bytes, 388);
  EXPECT_FALSE(kernel.uses_dynamic_shared);
  ASSERT_EQ(kernel.local.size(), 2);
  EXPECT_EQ(kernel.local[1].offset, 24);
  EXPECT_EQ(kernel.local_bytes, 32);
}

TEST(Kernel, HasSharedMemoryOfTheModuleThatItUses) {
  const Module module(
      one_kernel(".reg .b32 %r<4>; .shared .u32 own; mov.u32 %r1, dynamic; mov.u32 %r2, used; mov.u32 %r3, used+4;",
                 ".shared .align 8 .b8 unused[64]; .shared .align 8 .b8 used[12];"
                 ".extern .shared .align 16 .b8 dynamic[]; .extern .shared .align 64 .b8 unused_too[];"));
  const Kernel& kernel = *module.kernel("k");
  std::vector<std::pair<std::string_view, std::size_t>> shared;
  for (const Variable& variable : kernel.shared) shared.emplace_back(variable.name, variable.offset);
  using testing::Pair;
  EXPECT_THAT(shared, ElementsAre(Pair("own", 0), Pair("used", 8), Pair("dynamic", 32)));
  EXPECT_EQ(kernel.static_shared_bytes, 32);
  EXPECT_EQ(kernel.shared.back().bytes, 0);
  EXPECT_TRUE(kernel.uses_dynamic_shared);
}

TEST(Kernel, KnowsSourceLines) {
  const Module module(one_kernel(R"(
    bar.sync 0;
    .loc 1 10 3
    bar.sync 1;
    .loc 2 50 5, function_name $L__info_string0, inlined_at 1 10 3
    bar.sync 2;
    .loc	3 70 1, function_name $L__info_string1+16, inlined_at 2 50 5
    bar.sync 3;
    .loc 2 51 5, function_name $L__info_string0, inlined_at 1 12 1
    bar.sync 4;
    .loc 1 11 3
    bar.sync 5;)"));
  std::vector<std::vector<unsigned>> lines;
  for (const Instruction& each : module.kernel("k")->code)
    lines.push_back({each.source.file, each.source.line, each.called_from.file, each.called_from.line});
  EXPECT_THAT(lines, ElementsAre(ElementsAre(0, 0, 0, 0), ElementsAre(1, 10, 1, 10), ElementsAre(2, 50, 1, 10),
                                 ElementsAre(3, 70, 1, 10), ElementsAre(2, 51, 1, 12), ElementsAre(1, 11, 1, 11)));
}

}  // namespace
}  // namespace gradring::ptx
