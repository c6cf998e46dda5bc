// SPDX-License-Identifier: Apache-2.0
// A shared library without the entry of a CUDA module.
extern "C" int not_an_entry() { return 0; }
