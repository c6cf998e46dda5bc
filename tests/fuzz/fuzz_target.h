// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

/// What libFuzzer calls for each input, and corpus_test.cpp for each file of the corpus. One of them is linked into a
/// program. A parser that refuses its input throws its own error, which the target catches; anything else ends the
/// program.
// NOLINTNEXTLINE(readability-identifier-naming): the name is libFuzzer's
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);
