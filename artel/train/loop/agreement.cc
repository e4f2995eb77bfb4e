#include "artel/train/loop/agreement.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <numeric>
#include <span>

#include "artel/base/error.h"
#include "artel/base/text.h"
#include "artel/cluster/differences.h"
#include "artel/cluster/worker_name.h"

namespace artel {
namespace {

constexpr char kFieldEnd = '\x1f';

// "worker 2 on n03 has 'a'", "workers 2, 3 have 'a'".
std::string owners(const comm::Group& group, const std::vector<int>& workers,
                   const std::string& value) {
  return fmt::format("{} {} '{}'", worker_names_of(group, workers),
                     workers.size() == 1 ? "has" : "have", value);
}

std::string to_lines(const std::vector<Difference>& found) {
  std::vector<std::string> lines;
  for (const Difference& each : found)
    lines.push_back(join({each.key, each.own, each.other}, std::string(1, kFieldEnd)));
  return join(lines, "\n");
}

// A fact on which workers differ, by their ranks.
struct Dispute {
  std::string of_first;                                          // the line of worker 0
  std::vector<std::pair<std::string, std::vector<int>>> owners;  // the other lines
};

// Worker 0's verdict on the differences that each worker has found, by rank; empty without any.
std::string judge(const comm::Group& group, const std::vector<std::string>& found) {
  std::vector<std::string> keys;
  std::map<std::string, Dispute> disputes;
  for (int rank = 0; rank < std::ssize(found); ++rank)
    for (const std::string& line : split(found[rank], '\n')) {
      const std::vector<std::string> fields = split(line, kFieldEnd);
      if (fields.size() != 3) continue;
      if (!disputes.contains(fields[0])) keys.push_back(fields[0]);
      Dispute& dispute = disputes[fields[0]];
      dispute.of_first = fields[2];
      auto same =
          std::ranges::find(dispute.owners, fields[1], [](auto& each) { return each.first; });
      if (same == dispute.owners.end())
        same = dispute.owners.insert(same, {fields[1], std::vector<int>()});
      same->second.push_back(rank);
    }
  std::vector<std::string> verdicts;
  for (const std::string& key : keys) {
    std::vector<int> same(found.size());
    std::iota(same.begin(), same.end(), 0);
    std::vector<std::string> parts;
    for (const auto& [line, ranks] : disputes[key].owners) {
      parts.push_back(owners(group, ranks, line));
      std::erase_if(same,
                    [&theirs = ranks](int rank) { return std::ranges::count(theirs, rank) > 0; });
    }
    parts.push_back(owners(group, same, disputes[key].of_first));
    verdicts.push_back(join(parts, ", "));
  }
  return listed(std::move(verdicts));
}

}  // namespace

std::string to_text(const Facts& facts) {
  std::string text;
  for (const auto& [name, value] : facts) text += name + " = " + value + "\n";
  return text;
}

std::string broadcast_text(comm::Group& group, std::string text, int root, double timeout) {
  uint64_t size = text.size();
  group.broadcast(std::as_writable_bytes(std::span(&size, 1)), root,
                  {.label = "size of text", .timeout = timeout});
  text.resize(size);
  group.broadcast(std::as_writable_bytes(std::span(text)), root, {.label = "text"});
  return text;
}

bool holds_on_any(comm::Group& group, bool value, const std::string& label) {
  const int32_t own = value ? 1 : 0;
  std::vector<int32_t> all(static_cast<size_t>(group.size()));
  group.all_gather(std::as_bytes(std::span(&own, 1)), std::as_writable_bytes(std::span(all)), {},
                   {.label = label});
  return std::ranges::any_of(all, [](int32_t each) { return each != 0; });
}

std::vector<std::string> gather_text(comm::Group& group, const std::string& text) {
  std::vector<size_t> sizes(static_cast<size_t>(group.size()));
  const size_t own = text.size();
  group.all_gather(std::as_bytes(std::span(&own, 1)), std::as_writable_bytes(std::span(sizes)), {},
                   {.label = "size of text"});
  const bool here = group.rank() == 0;
  std::string all(here ? std::accumulate(sizes.begin(), sizes.end(), size_t{0}) : 0, '\0');
  group.gather(std::as_bytes(std::span(text)), std::as_writable_bytes(std::span(all)), 0, sizes,
               {.label = "text"});
  std::vector<std::string> texts;
  size_t begin = 0;
  for (size_t i = 0; here && i < sizes.size(); begin += sizes[i++])
    texts.push_back(all.substr(begin, sizes[i]));
  return texts;
}

void check_agreement(comm::Group& group, const Facts& facts) {
  const std::string mine = to_text(facts);
  const std::vector<std::string> found =
      gather_text(group, to_lines(differences(mine, broadcast_text(group, mine))));
  const std::string verdict = broadcast_text(group, judge(group, found));
  require(verdict.empty(), ErrorKind::invalid_argument,
          "the workers were started differently: {}; start all with the same configuration, data "
          "and version, on processors of one kind",
          verdict);
}

}  // namespace artel
