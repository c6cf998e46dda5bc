// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "tests/rules/source_tree.h"

namespace gradring::rules {

/// Which folders of production code include headers of which others.
using FolderGraph = std::map<std::string, std::set<std::string>, std::less<>>;

/// `folder_of` names the folder that a file counts as: folder_of, room_of or direct_folder_of.
FolderGraph folder_graph(const SourceTree& tree, std::string (*folder_of)(const std::string& path));

/// All folders that `start` includes, directly or through others; itself, if it is in a circle.
std::set<std::string> reachable(const FolderGraph& graph, const std::string& start);

/// The longest chain of folders below `package` of which each includes the next, from the top. Of a graph without circles.
std::vector<std::string> longest_chain(const FolderGraph& graph, const std::string& package);

}  // namespace gradring::rules
