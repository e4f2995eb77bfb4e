#include "artel/train/agreement.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "artel/base/error.h"
#include "artel/base/text.h"

namespace artel {
namespace {

// Where a worker differs from worker 0 for the first time.
struct Difference {
  size_t line = std::string::npos;  // none
  std::string own, first;           // the lines of this worker and of worker 0
};

Difference difference(const std::string& mine, const std::string& of_first) {
  const std::vector<std::string> own = split(mine, '\n'), first = split(of_first, '\n');
  for (size_t i = 0; i < std::max(own.size(), first.size()); ++i) {
    const std::string a = i < own.size() ? own[i] : "", b = i < first.size() ? first[i] : "";
    if (a != b) return {i, a, b};
  }
  return {};
}

// "worker 2 has 'a'", "workers 2, 3 have 'a'".
std::string owners(const std::vector<int>& workers, const std::string& value) {
  return fmt::format("worker{} {} {} '{}'", workers.size() == 1 ? "" : "s",
                     fmt::join(workers, ", "), workers.size() == 1 ? "has" : "have", value);
}

// What worker 0 says of the differences that the workers have found; nothing if there are none. The
// first fact that differs anywhere counts: others may follow from it.
std::string judge(const std::vector<Difference>& found) {
  const auto first =
      std::min_element(found.begin(), found.end(),
                       [](const Difference& a, const Difference& b) { return a.line < b.line; });
  if (first->line == std::string::npos) return "";
  std::vector<int> others, same;
  for (size_t rank = 0; rank < found.size(); ++rank) {
    const Difference& mine = found[rank];
    if (mine.line > first->line)
      same.push_back(static_cast<int>(rank));
    else if (mine.own == first->own)
      others.push_back(static_cast<int>(rank));
  }
  return fmt::format("{}, {}", owners(others, first->own), owners(same, first->first));
}

}  // namespace

std::string to_text(const Facts& facts) {
  std::string text;
  for (const auto& [name, value] : facts) text += name + " = " + value + "\n";
  return text;
}

std::string broadcast_text(comm::Group& group, std::string text, int root) {
  uint64_t size = text.size();
  group.broadcast(std::as_writable_bytes(std::span(&size, 1)), root, {.label = "size of text"});
  text.resize(size);
  group.broadcast(std::as_writable_bytes(std::span(text)), root, {.label = "text"});
  return text;
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
  const Difference own = difference(mine, broadcast_text(group, mine));
  std::vector<Difference> found;
  for (const std::string& text :
       gather_text(group, fmt::format("{}\n{}\n{}", own.line, own.own, own.first))) {
    const std::vector<std::string> lines = split(text, '\n');
    found.push_back({std::stoull(lines[0]), lines[1], lines[2]});
  }
  const std::string verdict = broadcast_text(group, found.empty() ? "" : judge(found));
  require(verdict.empty(), ErrorKind::invalid_argument,
          "the workers were started differently: {}; start all with the same configuration, data "
          "and version, on processors of one kind",
          verdict);
}

}  // namespace artel
