// SPDX-License-Identifier: Apache-2.0
// What is not PTX, or is not known here, is an error that says where it is.
#include <gmock/gmock.h>

#include "kernels/simulated_gpu/ptx/error.h"
#include "kernels/simulated_gpu/ptx/module.h"
#include "tests/kernels/simulated_gpu/ptx/one_kernel.h"

namespace gradring::ptx {
namespace {

using testing::StartsWith;

std::string error_of(const std::string& text) {
  try {
    const Module module(text);
    for (const auto name : module.kernel_names()) module.kernel(name);
  } catch (const PtxError& error) {
    return error.what();
  }
  return "none";
}

struct Mistake {
  const char* text;
  const char* message;
};

class BodyErrors : public testing::TestWithParam<Mistake> {};

TEST_P(BodyErrors, NameLineAndText) {
  // The braces of a kernel are found without reading it, so that a mistake needs a line of its own.
  EXPECT_THAT(
      error_of(tests::one_kernel("\n  .reg .pred %p<2>; .reg .b32 %r<4>;\n  " + std::string(GetParam().text) + "\n")),
      StartsWith("PTX line 8: " + std::string(GetParam().message) + ": " + GetParam().text));
}

INSTANTIATE_TEST_SUITE_P(
    OfInstructions, BodyErrors,
    testing::Values(Mistake{"add.s32 %r1, %r4, 2;", "register %r4 is not declared"},
                    Mistake{"add.s32 %r1, %r01, 2;", "register %r01 is not declared"},
                    Mistake{"mov.u32 %r1, tile;", "name tile is not declared"},
                    Mistake{"mov.u32 %r1, 0x;", "number '0x' cannot be read"},
                    Mistake{"mov.u32 %r1, 0f3F80;", "number '0f3F80' cannot be read"},
                    Mistake{"mov.u64 %r1, 18446744073709551616;", "number '18446744073709551616' cannot be read"},
                    Mistake{"mov.u32 %r1, (1+2);", "expressions are not known here"},
                    Mistake{"mov.u32 %r1 %r2;", "';' was expected before '%r2'"},
                    Mistake{"mov.u32 %r1, ;", "an operand was expected before ';'"},
                    Mistake{"ld.global.u32 %r1, [%r2;", "']' was expected before ';'"},
                    Mistake{"ld.global.u32 %r1, [%r2+%r3];", "an integer was expected before '%r3'"},
                    Mistake{"mov.b64 %r1, {%r2 %r3};", "'}' was expected before '%r3'"},
                    Mistake{"@%r1 ret;", "%r1 is not declared as a predicate"},
                    Mistake{"@%p7 ret;", "%p7 is not declared as a predicate"},
                    Mistake{"%r1 = 2;", "an opcode was expected before '%r1'"},
                    Mistake{"ld .global.u32 %r1, [%r2];", "an operand was expected before '.global'"},
                    Mistake{"bra nowhere;", "label nowhere is not declared"},
                    Mistake{"{ bra inner; } { inner: ret; }", "label inner is not declared"},
                    Mistake{"L: L: ret;", "label L is declared twice"},
                    Mistake{"call.uni (%r1), f, (%r2);", "name f is not declared"},
                    Mistake{".param .b64 param0; .param .b64 param0;", "variable param0 is declared twice"},
                    Mistake{".reg .b128 %x;", "type '.b128' of a register is not known here"},
                    Mistake{".reg .b32 a, a;", "register a is declared twice"},
                    Mistake{".shared .align 3 .b8 t[4];", "an alignment is 3, not a power of two"},
                    Mistake{".shared .b8 t[];", "variable t has no size"},
                    Mistake{".shared .b8 count[4];", "variable count is declared twice"},
                    Mistake{".local .pred t;", "type '.pred' of a variable is not known here"},
                    Mistake{".local .b64 t[4000000000000];", "variable t is larger than 17592186044416 bytes"},
                    Mistake{".surface x;", "directive '.surface' in a kernel is not known here"},
                    Mistake{"/ ret;", "an instruction was expected before '/'"}));

class ModuleErrors : public testing::TestWithParam<Mistake> {};

TEST_P(ModuleErrors, NameLineAndText) {
  EXPECT_THAT(error_of(".version 9.0\n" + std::string(GetParam().text)),
              StartsWith("PTX line 2: " + std::string(GetParam().message)));
}

INSTANTIATE_TEST_SUITE_P(
    OfDirectives, ModuleErrors,
    testing::Values(
        Mistake{".address_size 32", "addresses have 32 bits; 64 are known here"},
        Mistake{".tex t;", "directive '.tex' of a module is not known here"},
        Mistake{"entry k() { ret; }", "directive 'entry' of a module is not known here"},
        Mistake{".entry k() { ret; ", "'{' is never closed"},  //
        Mistake{".entry k()", "'{' was expected before the end"},
        Mistake{".entry k() { ret; } .entry k() { ret; }", "kernel k is defined twice"},
        Mistake{".entry k() .maxntid 1024, 1024 { ret; }", "the threads of a block must be from 1 to 65536"},
        Mistake{".entry k() .abi_preserve 2 { ret; }", "directive '.abi_preserve' of a kernel is not known here"},
        Mistake{".entry k(.reg .b32 a) { ret; }", "'.param' was expected before '.reg'"},
        Mistake{".file 70000 \"a\"", "the number of a file is 70000, not below 65536"},
        Mistake{".file 1 \"a", "a string is never closed"},  //
        Mistake{".global .u32 a = {1", "'}' was expected before ''"},
        Mistake{".global .u32 a[1] = {1, 2};", "variable a has more initial values than elements"},
        Mistake{".global .u32 a = generic(b);", "an address in fewer than 64 bits"},
        Mistake{".global .u32 a; .shared .u32 a;", "variable a is declared twice"},
        Mistake{"/* no end", "a comment is never closed"}));

TEST(PtxError, ShortensLongLines) { EXPECT_LT(error_of(".version 9.0 .tex " + std::string(10000, 'x')).size(), 500); }

}  // namespace
}  // namespace gradring::ptx
