// SPDX-License-Identifier: Apache-2.0
// A shared library that has no door.
extern "C" int not_a_door() { return 0; }
