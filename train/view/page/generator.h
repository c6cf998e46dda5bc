// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace gradring::train::page {

// How gradring's pages and pictures begin, which tells them from those of other programs.

inline constexpr std::string_view kPageBegin =
    "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta name=\"generator\" content=\"gradring\">\n";
inline constexpr std::string_view kPictureBegin = "<!-- gradring -->\n<svg ";

inline bool is_page(std::string_view head) { return head.starts_with(kPageBegin); }
inline bool is_picture(std::string_view head) { return head.starts_with(kPictureBegin); }

}  // namespace gradring::train::page
