// SPDX-License-Identifier: Apache-2.0
// wmma of shapes and types other than m16n16k16 of halves, wgmma with other types, movmatrix.
#include <gtest/gtest.h>

#include "tests/kernels/simulated_gpu/simulation.h"
#include "tests/kernels/simulated_gpu/values.h"
#include "tests/kernels/simulated_gpu/words.h"

namespace gradring::simulated_gpu {
namespace {

std::string vector_of(const std::string& prefix, int count) {
  std::string text = "{";
  for (int i = 0; i < count; ++i) text += (i == 0 ? "" : ", ") + prefix + std::to_string(i);
  return text + "}";
}

struct WmmaCase {
  std::string shape, type, sum;  ///< "m16n16k16", "s8", "s32"
  int m, n, k, a, b, c;          ///< registers of A, B and C
};

/// D = A B + C with A row-major, B column-major.
template <class T, class S>
void check_wmma(const WmmaCase& test) {
  std::vector<T> a(static_cast<std::size_t>(test.m * test.k)), b(static_cast<std::size_t>(test.k * test.n));
  std::vector<S> c(static_cast<std::size_t>(test.m * test.n));
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = static_cast<T>(i * 7 % 11);
  for (std::size_t i = 0; i < b.size(); ++i) b[i] = static_cast<T>(i * 5 % 9);
  for (std::size_t i = 0; i < c.size(); ++i) c[i] = static_cast<S>(i % 13);
  GlobalMemory memory;
  const DeviceArray<T> in_a(memory, a), in_b(memory, b);
  const DeviceArray<S> sums(memory, c);
  const std::string bits = test.type == "f64" ? "f64" : "b32";
  const std::string fragments = ".reg ." + bits + " %a<8>, %b<8>, %c<8>;\n";
  const std::string end = std::string(test.type == "f64" ? ".rn" : "") + ";";
  const std::string types = test.sum + "." + test.type + "." + test.type + "." + test.sum;
  TestKernel(fragments + "wmma.load.a.sync.aligned.row." + test.shape + ".global." + test.type + " " +
                 vector_of("%a", test.a) + ", [%p0], " + std::to_string(test.k) + ";\nwmma.load.b.sync.aligned.col." +
                 test.shape + ".global." + test.type + " " + vector_of("%b", test.b) + ", [%p1], " +
                 std::to_string(test.k) + ";\nwmma.load.c.sync.aligned.row." + test.shape + ".global." + test.sum +
                 " " + vector_of("%c", test.c) + ", [%p2], " + std::to_string(test.n) +
                 ";\nwmma.mma.sync.aligned.row.col." + test.shape + "." + types + (test.type == "f64" ? ".rn " : " ") +
                 vector_of("%c", test.c) + ", " + vector_of("%a", test.a) + ", " + vector_of("%b", test.b) + ", " +
                 vector_of("%c", test.c) + ";\nwmma.store.d.sync.aligned.row." + test.shape + ".global." + test.sum +
                 " [%p2], " + vector_of("%c", test.c) + ", " + std::to_string(test.n) + ";",
             3)
      .run(memory, {in_a.address(), in_b.address(), sums.address()}, {}, {32});
  const std::vector<S> found = sums.values();
  for (int row = 0; row < test.m; ++row)
    for (int column = 0; column < test.n; ++column) {
      S sum = c[static_cast<std::size_t>(row * test.n + column)];
      for (int k = 0; k < test.k; ++k)
        sum += static_cast<S>(a[static_cast<std::size_t>(row * test.k + k)]) *
               static_cast<S>(b[static_cast<std::size_t>(column * test.k + k)]);
      EXPECT_EQ(found[static_cast<std::size_t>(row * test.n + column)], sum) << test.shape << row << " " << column;
    }
}

// Numbers of registers: PTX ISA 9.0, 9.7.14.4.1, tables of matrix fragments.
TEST(WmmaTypes, IntegersTf32AndDoubles) {
  check_wmma<std::int8_t, std::int32_t>({"m16n16k16", "s8", "s32", 16, 16, 16, 2, 2, 8});
  check_wmma<std::uint8_t, std::int32_t>({"m8n32k16", "u8", "s32", 8, 32, 16, 1, 4, 8});
  check_wmma<std::uint8_t, std::int32_t>({"m32n8k16", "u8", "s32", 32, 8, 16, 4, 1, 8});
  check_wmma<float, float>({"m16n16k8", "tf32", "f32", 16, 16, 8, 4, 4, 8});
  check_wmma<double, double>({"m8n8k4", "f64", "f64", 8, 8, 4, 1, 1, 2});
}

// A of ones (32 x 16), B of twos: each element of D is 32, in f16.
TEST(WmmaTypes, HalvesWithSumsOfHalves) {
  GlobalMemory memory;
  const DeviceArray<U16> a(memory, std::vector<U16>(512, 0x3C00)), b(memory, std::vector<U16>(128, 0x4000)),
      d(memory, 256);
  TestKernel(
      ".reg .b32 %a<8>, %b<8>, %c<4>;\nmov.b32 %c0, 0; mov.b32 %c1, 0; mov.b32 %c2, 0; mov.b32 %c3, 0;\n"
      "wmma.load.a.sync.aligned.row.m32n8k16.global.f16 " +
          vector_of("%a", 8) +
          ", [%p0], 16;\n"
          "wmma.load.b.sync.aligned.row.m32n8k16.global.f16 " +
          vector_of("%b", 8) +
          ", [%p1], 8;\n"
          "wmma.mma.sync.aligned.row.row.m32n8k16.f16.f16 " +
          vector_of("%c", 4) + ", " + vector_of("%a", 8) + ", " + vector_of("%b", 8) + ", " + vector_of("%c", 4) +
          ";\n"
          "wmma.store.d.sync.aligned.col.m32n8k16.global.f16 [%p2], " +
          vector_of("%c", 4) + ", 32;",
      3)
      .run(memory, {a.address(), b.address(), d.address()}, {}, {32});
  EXPECT_EQ(d.values(), std::vector<U16>(256, 0x5000));
}

/// The sums for A of [64, K] and B of [8, K] in shared memory, 32 bytes a row without swizzle, all words `a` and `b`.
std::vector<U32> product_of_bytes(const std::string& instruction, U32 a, U32 b, const std::string& rest) {
  GlobalMemory memory;
  const DeviceArray<U32> sums(memory, std::size_t{512});
  TestKernel(
      ".reg .b32 %thread; .reg .b64 %out; .reg .b32 %r<9>; .reg .b64 %rd<3>;\n.shared .align 128 .b8 m[4096];\n"
      "mov.u32 %thread, %tid.x; mul.wide.u32 %out, %thread, 16; add.u64 %out, %out, %p0; mov.u32 %r1, m;\n"
      "shl.b32 %r2, %thread, 4; add.u32 %r2, %r2, %r1; mov.b32 %r3, " +
          std::to_string(a) +
          ";\n"
          "st.shared.v4.b32 [%r2], {%r3, %r3, %r3, %r3}; mov.b32 %r4, " +
          std::to_string(b) +
          ";\n"
          "st.shared.v4.b32 [%r2+2048], {%r4, %r4, %r4, %r4};\n"
          "mov.b32 %r5, 0; mov.b32 %r6, 0; mov.b32 %r7, 0; mov.b32 %r8, 0;\n"
          "mov.u64 %rd1, 0x1000080040; mov.u64 %rd2, 0x10000800c0; fence.proxy.async.shared::cta; bar.sync 0;\n"
          "wgmma.fence.sync.aligned; wgmma.mma_async.sync.aligned." +
          instruction + ", %rd1, %rd2, 1" + rest +
          ";\n"
          "wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;\n"
          "st.global.v4.b32 [%out], {%r5, %r6, %r7, %r8};",
      1)
      .run(memory, {sums.address()}, {}, {128});
  return sums.values();
}

TEST(WgmmaTypes, OtherTypesAndSums) {
  const std::string four = " {%r5, %r6, %r7, %r8}", two = " {%r5, %r6}";
  // 32 products of -2 and 3.
  EXPECT_EQ(product_of_bytes("m64n8k32.s32.s8.s8" + four, 0xFEFEFEFE, 0x03030303, ""),
            std::vector<U32>(512, static_cast<U32>(-192)));
  EXPECT_EQ(product_of_bytes("m64n8k32.s32.u8.s8" + four, 0xFEFEFEFE, 0xFFFFFFFF, ""),
            std::vector<U32>(512, static_cast<U32>(-254 * 32)));
  // 1.0 and 2.0 of e4m3: 64; -1 as imm-scale-b.
  EXPECT_EQ(product_of_bytes("m64n8k32.f32.e4m3.e4m3" + four, 0x38383838, 0x40404040, ", 1, 1"),
            std::vector<U32>(512, 0x42800000));
  EXPECT_EQ(product_of_bytes("m64n8k8.f32.tf32.tf32" + four, 0x3F800000, 0x40000000, ", 1, -1"),
            std::vector<U32>(512, 0xC1800000));
  // f16: 16 products of 1 and 2, two sums in a register.
  const std::vector<U32> halves =
      product_of_bytes("m64n8k16.f16.f16.f16" + two, 0x3C003C00, 0x40004000, ", 1, 1, 0, 0");
  for (unsigned i = 0; i < 512; ++i) EXPECT_EQ(halves[i], i % 4 < 2 ? 0x50005000 : 0u);
}

TEST(Movmatrix, Transposes) {
  GlobalMemory memory;
  DeviceArray<U32> words(memory, [] {
    std::vector<U32> made;
    for (U32 i = 0; i < 32; ++i) made.push_back((2 * i + 1) << 16 | 2 * i);  // element 8 row + column
    return made;
  }());
  TestKernel(kThread +
                 "ld.global.b32 %r1, [%address]; movmatrix.sync.aligned.m8n8.trans.b16 %r2, %r1;\n"
                 "st.global.b32 [%address], %r2;",
             1)
      .run(memory, {words.address()}, {}, {32});
  const std::vector<U32> found = words.values();
  for (U32 lane = 0; lane < 32; ++lane) {
    const U32 row = lane / 4, column = lane % 4 * 2;
    EXPECT_EQ(found[lane], (8 * (column + 1) + row) << 16 | (8 * column + row));
  }
}

}  // namespace
}  // namespace gradring::simulated_gpu
