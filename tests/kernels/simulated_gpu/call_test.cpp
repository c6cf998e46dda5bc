// SPDX-License-Identifier: Apache-2.0
// call and ret: device functions, recursion, indirect calls, functions of the runtime.
#include <gtest/gtest.h>

#include <mutex>

#include "kernels/simulated_gpu/machine/runtime_functions.h"
#include "kernels/simulated_gpu/units/fault.h"
#include "tests/kernels/simulated_gpu/simulation.h"
#include "tests/kernels/simulated_gpu/values.h"

namespace gradring::simulated_gpu {
namespace {

/// A kernel that stores %r1 of each thread; `functions` are declared before it.
std::vector<U32> words_of(const std::string& functions, const std::string& body, unsigned threads,
                          const ExecutionOptions& options = {}) {
  const ptx::Module module(".version 9.0\n.target sm_90a\n.address_size 64\n" + functions +
                           "\n.visible .entry test(.param .u64 out)\n{\n"
                           ".reg .b64 %rd<9>; .reg .b32 %r<9>; .reg .pred %q<3>; .reg .b32 %thread;\n"
                           "ld.param.u64 %rd1, [out]; mov.u32 %thread, %tid.x; mul.wide.u32 %rd2, %thread, 4;\n"
                           "add.u64 %rd1, %rd1, %rd2;\n" +
                           body + "\nst.global.u32 [%rd1], %r1;\nret;\n}\n");
  const Executable executable(module, *module.kernel("test"));
  GlobalMemory memory;
  DeviceArray<U32> words(memory, threads);
  alignas(128) std::byte parameters[128];
  const std::uint64_t address = words.address();
  std::memcpy(parameters, &address, sizeof address);
  run(executable, {.grid = {}, .block = {threads}, .parameters = parameters}, memory, options);
  return words.values();
}

/// As nvcc 13 writes it.
std::string call_of(const std::string& function, const std::string& argument, const std::string& result,
                    const std::string& prototype = "") {
  return "{ // callseq 0, 0\n.reg .b32 temp_param_reg;\n.param .b32 param0;\nst.param.b32 [param0+0], " + argument +
         ";\n.param .b32 retval0;\ncall" + (prototype.empty() ? ".uni" : "") + " (retval0),\n" + function +
         ",\n(\nparam0\n)\n" + prototype + ";\nld.param.b32 " + result + ", [retval0+0];\n} // callseq 0\n";
}

/// x -> x + 100, with a branch.
const std::string kAdd100 =
    ".func (.param .b32 func_retval0) add_100(.param .b32 add_100_param_0)\n{\n.reg .b32 %r<4>; .reg .pred %p<2>;\n"
    "ld.param.u32 %r1, [add_100_param_0]; setp.lt.u32 %p1, %r1, 3; @%p1 bra $small;\n"
    "add.u32 %r2, %r1, 100; bra $end;\n$small: add.u32 %r2, %r1, 100;\n"
    "$end: st.param.b32 [func_retval0+0], %r2; ret;\n}\n";

const std::string kTimesTwo =
    ".func (.param .b32 func_retval0) times_2(.param .b32 times_2_param_0)\n{\n.reg .b32 %r<4>;\n"
    "ld.param.u32 %r1, [times_2_param_0]; add.u32 %r2, %r1, %r1; st.param.b32 [func_retval0+0], %r2; ret;\n}\n";

TEST(Call, ReturnsToEachCaller) {
  const std::vector<U32> words =
      words_of(kAdd100, call_of("add_100", "%thread", "%r1") + call_of("add_100", "%r1", "%r1"), 45);
  for (unsigned thread = 0; thread < 45; ++thread) EXPECT_EQ(words[thread], thread + 200);
}

TEST(Call, ThreadsThatDoNotCallWaitForThoseThatDo) {
  const std::vector<U32> words = words_of(
      kAdd100,
      "mov.u32 %r1, 7; setp.lt.u32 %q1, %thread, 20; @!%q1 bra $join;\n" + call_of("add_100", "%thread", "%r1") +
          "$join: activemask.b32 %r2; add.u32 %r1, %r1, 1; setp.eq.u32 %q2, %r2, -1; @%q2 add.u32 %r1, %r1, 1000;",
      32);
  for (unsigned thread = 0; thread < 32; ++thread) EXPECT_EQ(words[thread], (thread < 20 ? thread + 100 : 7) + 1001);
}

TEST(Call, AFunctionMayBeDefinedBehindItsCaller) {
  const std::string declaration = ".func (.param .b32 func_retval0) times_2(.param .b32 times_2_param_0);\n";
  const std::string outer =
      ".func (.param .b32 func_retval0) outer(.param .b32 outer_param_0)\n{\n.reg .b32 %r<4>;\n"
      "ld.param.u32 %r1, [outer_param_0];\n" +
      call_of("times_2", "%r1", "%r2") + "add.u32 %r2, %r2, %r1; st.param.b32 [func_retval0+0], %r2; ret;\n}\n";
  const std::vector<U32> words = words_of(declaration + outer + kTimesTwo, call_of("outer", "%thread", "%r1"), 32);
  for (unsigned thread = 0; thread < 32; ++thread) EXPECT_EQ(words[thread], 3 * thread);
}

// fib(n) keeps n in a register and in a local array while it calls itself.
TEST(Call, RecursionKeepsRegistersParametersAndLocalMemory) {
  const std::string fib =
      ".func (.param .b32 func_retval0) fib(.param .b32 fib_param_0)\n{\n.local .align 4 .b8 depot[8];\n"
      ".reg .b32 %r<9>; .reg .b64 %rd<3>; .reg .pred %p<2>;\n"
      "mov.u64 %rd1, depot; ld.param.u32 %r1, [fib_param_0]; st.local.u32 [%rd1+4], %r1;\n"
      "setp.lt.u32 %p1, %r1, 2; mov.u32 %r4, %r1; @%p1 bra $end; sub.u32 %r2, %r1, 1;\n" +
      call_of("fib", "%r2", "%r3") +
      "ld.local.u32 %r5, [%rd1+4]; ld.param.u32 %r6, [fib_param_0];\n"
      "sub.u32 %r2, %r5, 2; add.u32 %r2, %r2, %r6; sub.u32 %r2, %r2, %r1;\n" +
      call_of("fib", "%r2", "%r4") +
      "@!%p1 add.u32 %r4, %r4, %r3;\n"
      "$end: st.param.b32 [func_retval0+0], %r4; ret;\n}\n";
  const std::vector<U32> words = words_of(fib, call_of("fib", "%thread", "%r1"), 12);
  U32 a = 0, b = 1;
  for (unsigned thread = 0; thread < 12; ++thread, b += a, a = b - a) EXPECT_EQ(words[thread], a);
}

TEST(Call, RecursionThatDoesNotEndIsAFault) {
  const std::string forever =
      ".func (.param .b32 func_retval0) forever(.param .b32 p)\n{\n.reg .b32 %r<3>;\nld.param.u32 %r1, [p];\n" +
      call_of("forever", "%r1", "%r2") + "st.param.b32 [func_retval0+0], %r2; ret;\n}\n";
  EXPECT_NE(fault_of([&] { words_of(forever, call_of("forever", "%thread", "%r1"), 32); }).find("stack"),
            std::string::npos);
}

/// A function returns the address of its own local variable, through which its caller reads or writes.
TEST(Call, APointerIntoAReturnedFrameIsReported) {
  const std::string address_of_own =
      ".func (.param .b32 func_retval0) own(.param .b32 p)\n{\n.local .align 4 .b8 depot[8];\n.reg .b32 %r<3>; .reg "
      ".b64 %rd<2>;\nld.param.u32 %r1, [p]; mov.u64 %rd1, depot; st.local.u32 [%rd1], %r1; cvt.u32.u64 %r2, %rd1;\n"
      "st.param.b32 [func_retval0+0], %r2; ret;\n}\n";
  const auto fault = [&](const std::string& use) {
    return fault_of(
        [&] { words_of(address_of_own, call_of("own", "%thread", "%r1") + "cvt.u64.u32 %rd5, %r1;" + use, 32); });
  };
  EXPECT_EQ(fault(""), "");
  EXPECT_NE(fault("ld.local.u32 %r1, [%rd5];").find("of a device function that has returned is read: 4 bytes"),
            std::string::npos);
  EXPECT_NE(fault("st.local.u32 [%rd5], %r1;").find("that has returned is written"), std::string::npos);
}

/// What an earlier call left in the frame is not the value of a variable that was not written.
TEST(Call, AFrameBeginsUnwritten) {
  const std::string reads_late =
      ".func (.param .b32 func_retval0) late(.param .b32 p)\n{\n.local .align 4 .b8 depot[8];\n.reg .b32 %r<3>;\n.reg "
      ".b64 %rd<2>; .reg .pred %p<2>;\nld.param.u32 %r1, [p]; mov.u64 %rd1, depot; setp.eq.u32 %p1, %r1, 0;\n"
      "@!%p1 st.local.u32 [%rd1], %r1; ld.local.u32 %r2, [%rd1]; st.param.b32 [func_retval0+0], %r2; ret;\n}\n";
  const auto fault = [&](const std::string& second) {
    return fault_of([&] {
      words_of(reads_late,
               "mov.u32 %r2, 7;" + call_of("late", "%r2", "%r1") + "mov.u32 %r2, " + second + ";" +
                   call_of("late", "%r2", "%r1"),
               32);
    });
  };
  EXPECT_EQ(fault("8"), "");
  EXPECT_NE(fault("0").find("local memory is read before it is written"), std::string::npos);
}

TEST(Call, IndirectCallsGoWhereEachThreadPoints) {
  const std::vector<U32> words =
      words_of(kAdd100 + kTimesTwo,
               "and.b32 %r2, %thread, 1; setp.eq.u32 %q1, %r2, 1; mov.u64 %rd3, add_100; mov.u64 %rd4, times_2;\n"
               "selp.b64 %rd5, %rd3, %rd4, %q1;\nprototype_0 : .callprototype (.param .b32 _) _ (.param .b32 _);\n" +
                   call_of("%rd5", "%thread", "%r1", ", prototype_0"),
               40);
  for (unsigned thread = 0; thread < 40; ++thread)
    EXPECT_EQ(words[thread], thread % 2 == 1 ? thread + 100 : 2 * thread);
}

TEST(Call, AnIndirectCallOfNoFunctionIsAFault) {
  EXPECT_NE(fault_of([&] {
              words_of(kAdd100 + ".global .u64 table[1] = {add_100};\n",
                       "mov.u64 %rd5, 12345;\nprototype_0 : .callprototype (.param .b32 _) _ (.param .b32 _);\n" +
                           call_of("%rd5", "%thread", "%r1", ", prototype_0"),
                       32);
            }).find("an indirect call targets 12345, which is not the address of a function"),
            std::string::npos);
}

TEST(Branch, ByIndexGoesWhereEachThreadChooses) {
  const std::string body =
      "and.b32 %r2, %thread, 3;\ntargets: .branchtargets $zero, $one, $zero, $three;\nbrx.idx %r2, targets;\n"
      "$zero: mov.u32 %r1, 100; bra $end;\n$one: mov.u32 %r1, 101; bra $end;\n$three: mov.u32 %r1, 103;\n$end:\n";
  const std::vector<U32> words = words_of("", body, 40);
  for (unsigned thread = 0; thread < 40; ++thread) EXPECT_EQ(words[thread], thread % 2 == 0 ? 100u : 100 + thread % 4);
  EXPECT_NE(fault_of([&] {
              words_of("", "add.u32 %r2, %thread, 0;\n" + body.substr(body.find("targets:")), 40);
            }).find("index 4; expected less than 4"),
            std::string::npos);
}

TEST(Call, StructsAreCopied) {
  const std::string swap =
      ".func (.param .align 8 .b8 func_retval0[16]) swap(.param .align 8 .b8 swap_param_0[16])\n{\n.reg .b64 %rd<4>;\n"
      "ld.param.v2.b64 {%rd1, %rd2}, [swap_param_0]; st.param.b64 [func_retval0+0], %rd2;\n"
      "st.param.b64 [func_retval0+8], %rd1; ret;\n}\n";
  const std::vector<U32> words =
      words_of(swap,
               "mov.b64 %rd3, 5; cvt.u64.u32 %rd4, %thread;\n{\n.param .align 8 .b8 param0[16];\n"
               "st.param.v2.b64 [param0+0], {%rd3, %rd4};\n.param .align 8 .b8 retval0[16];\ncall.uni (retval0), swap, "
               "(param0);\nld.param.b64 %rd5, [retval0+0];\nld.param.b64 %rd6, [retval0+8];\n}\n"
               "mad.lo.u64 %rd5, %rd5, 10, %rd6; cvt.u32.u64 %r1, %rd5;",
               32);
  for (unsigned thread = 0; thread < 32; ++thread) EXPECT_EQ(words[thread], 10 * thread + 5);
}

const std::string kLog = ".extern .func (.param .b32 func_retval0) log_thread(.param .b64 text, .param .b32 number);\n";
const std::string kCallLog =
    "{\n.param .b64 param0;\nst.param.b64 [param0], %rd3;\n.param .b32 param1;\nst.param.b32 [param1], %thread;\n"
    ".param .b32 retval0;\ncall.uni (retval0), log_thread, (param0, param1);\nld.param.b32 %r1, [retval0];\n}\n";

TEST(Call, FunctionsOfTheRuntimeAreCalledForEachThread) {
  std::vector<std::string> calls;
  const RuntimeFunctions functions = {{"log_thread", [&](RuntimeCall& call) {
                                         calls.push_back(call.string_at(call.argument<std::uint64_t>(0)) +
                                                         std::to_string(call.argument<std::uint32_t>(1)));
                                         call.set_result(call.thread().x + 1);
                                       }}};
  const std::vector<U32> words = words_of(
      kLog,
      ".local .align 4 .b8 text[4]; mov.u64 %rd3, text; st.local.u32 [%rd3], 0x6261; cvta.local.u64 %rd3, %rd3;\n" +
          kCallLog,
      3, {.functions = &functions});
  EXPECT_EQ(words, (std::vector<U32>{1, 2, 3}));
  EXPECT_EQ(calls, (std::vector<std::string>{"ab0", "ab1", "ab2"}));
}

TEST(Call, AKernelThatCallsAnUnknownFunctionIsRejectedByName) {
  EXPECT_NE(fault_of([&] { words_of(kLog, "mov.u64 %rd3, 0;\n" + kCallLog, 3); }).find("it calls log_thread, "),
            std::string::npos);
}

}  // namespace
}  // namespace gradring::simulated_gpu
