// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string_view>

#include "data/fetch/known_file.h"

namespace gradring::data {

/// A file of a data set in the two forms in which people have it.
struct CatalogueFile {
  KnownFile file;           ///< as it is fetched, or comes out of the archive
  KnownFile unpacked = {};  ///< without its .gz; no name where it has none
};

/// A public data set: what it is, and what it takes to get it.
struct CatalogueEntry {
  std::string_view name;     ///< as open_dataset knows it; also the folder its files go to
  std::string_view title;    ///< what is in it
  std::string_view authors;  ///< whose work it is, and its terms where they are stated
  std::span<const CatalogueFile> files;
  KnownFile archive = {};  ///< a .tar.gz that holds the files; no name where they are fetched one by one
  std::span<const std::string_view> mirrors;
};

/// Every data set that can be fetched.
std::span<const CatalogueEntry> catalogue();

/// One of them.
///
/// Errors    InvalidArgument for a name that is not there; names the nearest, and says which sets need no files.
const CatalogueEntry& find_entry(std::string_view name);

}  // namespace gradring::data
