// SPDX-License-Identifier: Apache-2.0
// CUDA's built-in vector types, with CUDA's alignments.
#pragma once

#include <cstddef>

struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
};

// clang-format off
#define SIMT_VECTOR(Element, name)                                                                                   \
  struct name##1 { Element x; };                                                                                     \
  struct alignas(sizeof(Element) * 2) name##2 { Element x, y; };                                                     \
  struct name##3 { Element x, y, z; };                                                                               \
  struct alignas(sizeof(Element) * 4 < 16 ? sizeof(Element) * 4 : 16) name##4 { Element x, y, z, w; };               \
  constexpr name##1 make_##name##1(Element x) { return {x}; }                                                        \
  constexpr name##2 make_##name##2(Element x, Element y) { return {x, y}; }                                          \
  constexpr name##3 make_##name##3(Element x, Element y, Element z) { return {x, y, z}; }                            \
  constexpr name##4 make_##name##4(Element x, Element y, Element z, Element w) { return {x, y, z, w}; }
// clang-format on
SIMT_VECTOR(float, float)
SIMT_VECTOR(double, double)
SIMT_VECTOR(signed char, char)
SIMT_VECTOR(unsigned char, uchar)
SIMT_VECTOR(short, short)
SIMT_VECTOR(unsigned short, ushort)
SIMT_VECTOR(int, int)
SIMT_VECTOR(unsigned, uint)
SIMT_VECTOR(long long, longlong)
SIMT_VECTOR(unsigned long long, ulonglong)
#undef SIMT_VECTOR
