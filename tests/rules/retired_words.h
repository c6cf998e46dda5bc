// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>

namespace gradring::rules {

/// A word that this project once used for something that the field has a word for.
struct RetiredWord {
  const char* pattern;  ///< ECMAScript, regardless of case
  const char* replacement;
};

/// Only words that mean nothing else here: an ordinary word such as "search" is not listed.
inline constexpr auto kRetiredWords = std::to_array<RetiredWord>({
    {R"(\bbells?(\b|_|[A-Z]))", "Doorbell: notify, spin, park"},
    {R"(\berrand|_errand)", "PendingOp"},
    {R"(roll_?call)", "FailureDetector"},
    {R"(peer_?watch)", "PeerMonitor"},
    {R"(news_?board)", "ErrorPropagation"},
    {R"(culprit)", "failed_rank"},
    {R"(doorway)", "Acceptor"},
    {R"(door_?taken)", "AddressInUse"},
    {R"(stranger)", "unauthenticated connection"},
    {R"(surroundings)", "Dependencies"},
    {R"(sum_?lent)", "reduce_exposed"},
    {R"(farewell)", "goodbye"},
    {R"(lone_?(transport|group|segment))", "SingleRank"},
    {R"(\briders?\b|_riders?|Riders)", "LossSlot, piggybacked scalar"},
    {R"(gradient_?path)", "GradientReducer"},
    {R"(pretended_?device)", "DryRunDevice"},
    {R"(enqueue_?nothing)", "enqueue_empty_batch"},
    {R"(refuse_?if_?broken)", "throw_if_failed"},
    {R"(out_?of_?step)", "desync"},
    {R"(roster)", "NodeTable"},
    {R"(node_?offer)", "JoinRequest"},
    {R"(\bknock)", "connect"},
    {R"(\brungs?\b)", "variant, step"},
    {R"(so-manieth)", "grid-stride"},
    {R"(by and by)", "later, in time"},
    {R"(\bmend(s|ed|ing)?\b)", "fix"},
    {R"(\blest\b)", "so that ... not"},
    {R"(beside us)", "in parallel"},
    {R"(goes on behind step)", "resumes after step"},
    {R"(kByOuter|\bk[AB]?Along\b|\blies along\b)", "kKMajor, K-major"},
    {R"(\bturned over\b)", "transposed"},
    {R"(\binner ind(ex|ices)\b)", "K"},
    {R"((add|group)_?shares)", "sum_slices, split-K slice"},
    {R"(\bring of (tiles|stages)\b)", "multi-stage buffer"},
    {R"(\bbad numbers?\b)", "non-finite (Inf or NaN)"},
    {R"(TEST[A-Z_]*\([a-z0-9_]+, *[a-z0-9_]*refuse)", "Rejects, Rejected"},
});

/// Names that say nothing here, in the code of production alone: in prose and in messages the word is an ordinary one.
inline constexpr auto kRetiredNames = std::to_array<RetiredWord>({
    {R"(\bplaces?_?\b)", "environment (of a rank), index, position, offset, slot, folder, location"},
});

}  // namespace gradring::rules
