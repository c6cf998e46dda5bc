// SPDX-License-Identifier: Apache-2.0
#include "kernels/cast/cast.h"

#include "kernels/lib/arguments.h"
#include "kernels/lib/host_values.h"

namespace gradring::kernels::cast {

void check_args(const Args& args) {
  lib::check_floating("cast", "from", args.from);
  lib::check_floating("cast", "to", args.to);
  if (args.elements == 0) return;
  lib::check_pointer("cast", "x", args.x);
  lib::check_pointer("cast", "y", args.y);
  lib::check_apart("cast", args.x, args.elements * size_of(args.from), args.y, args.elements * size_of(args.to));
}

namespace reference {

void run(const Args& args) {
  check_args(args);
  lib::write_values(args.to, args.y, lib::read_values(args.from, args.x, args.elements));
}

}  // namespace reference
}  // namespace gradring::kernels::cast
