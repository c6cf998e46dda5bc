// SPDX-License-Identifier: Apache-2.0
// libcuda.so.1 has nothing of its own: the functions of the driver are in libcudart.so.13, which it needs.
