// SPDX-License-Identifier: Apache-2.0
// What a library must export to be taken for a BLAS.
extern "C" void sgemm_() {}
