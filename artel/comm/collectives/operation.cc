#include "artel/comm/collectives/operation.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "artel/base/text.h"

namespace artel::comm {
namespace {

auto compared(const Operation& operation) {
  return std::tie(operation.group, operation.sequence, operation.bytes, operation.root,
                  operation.kind, operation.type, operation.reduction, operation.algorithm);
}

bool reduces(Kind kind) {
  return kind == Kind::reduce || kind == Kind::all_reduce || kind == Kind::reduce_scatter ||
         kind == Kind::lane_reduce || kind == Kind::lane_reduce_scatter;
}

}  // namespace

std::string_view to_string(Kind kind) {
  constexpr std::array<std::string_view, 14> kNames{"send",           "receive",
                                                    "broadcast",      "scatter",
                                                    "gather",         "all_gather",
                                                    "reduce",         "all_reduce",
                                                    "reduce_scatter", "all_to_all",
                                                    "barrier",        "lane_reduce",
                                                    "split",          "lane_reduce_scatter"};
  const auto index = static_cast<size_t>(kind);
  return index < kNames.size() ? kNames[index] : "unknown";
}

void Operation::set_label(std::string_view text) {
  label = {};
  std::copy_n(text.begin(), std::min(text.size(), label.size() - 1), label.begin());
}

bool Operation::matches(const Operation& other) const { return compared(*this) == compared(other); }

std::string Operation::name() const {
  return fmt::format("{} #{}{}, {}", to_string(kind), sequence,
                     label[0] == 0 ? "" : fmt::format(" '{}'", label.data()),
                     format_bytes(static_cast<double>(bytes)));
}

std::string Operation::details() const {
  std::string text =
      fmt::format("{} #{} of {} bytes of {}", to_string(kind), sequence, bytes, to_string(type));
  if (reduces(kind)) text += fmt::format(" ({})", to_string(reduction));
  if (kind == Kind::lane_reduce || kind == Kind::lane_reduce_scatter)
    text += fmt::format(" over {} lanes", root);
  else if (root >= 0)
    text += fmt::format(" with root {}", root);
  if (algorithm != Algorithm::automatic) text += fmt::format(" by {}", to_string(algorithm));
  if (label[0] != 0) text += fmt::format(" '{}'", label.data());
  return text;
}

std::string mismatch_message(int rank, const Operation& mine, int other_rank,
                             const Operation& theirs) {
  // The lower rank first, so both sides print the same line.
  const bool first = rank < other_rank;
  return fmt::format(
      "[comm] ranks of group {} disagree: rank {} calls {}, rank {} calls {}; make the same calls "
      "in the same order on every rank",
      mine.group, first ? rank : other_rank, (first ? mine : theirs).details(),
      first ? other_rank : rank, (first ? theirs : mine).details());
}

}  // namespace artel::comm
