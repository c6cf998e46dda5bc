// SPDX-License-Identifier: Apache-2.0
// A library that needs a BLAS.
extern "C" void sgemm_();
extern "C" void use_blas() { sgemm_(); }
