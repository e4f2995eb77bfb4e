#include "artel/train/agreement.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "artel/base/error.h"
#include "artel/base/text.h"

namespace artel {
namespace {

std::string to_text(const Facts& facts) {
  std::string text;
  for (const auto& [name, value] : facts) text += name + " = " + value + "\n";
  return text;
}

// "name: worker 2 has 'a', worker 0 has 'b'" for the first line that differs.
std::string difference(int rank, const std::string& mine, const std::string& first) {
  const std::vector<std::string> own = split(mine, '\n'), other = split(first, '\n');
  for (size_t i = 0; i < std::max(own.size(), other.size()); ++i) {
    const std::string a = i < own.size() ? own[i] : "", b = i < other.size() ? other[i] : "";
    if (a != b) return fmt::format("worker {} has '{}', worker 0 has '{}'", rank, a, b);
  }
  return "";
}

}  // namespace

std::string broadcast_text(comm::Group& group, std::string text) {
  uint64_t size = text.size();
  group.broadcast(std::as_writable_bytes(std::span(&size, 1)), 0, {.label = "size of text"});
  text.resize(size);
  group.broadcast(std::as_writable_bytes(std::span(text)), 0, {.label = "text"});
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
  const std::string found = difference(group.rank(), mine, broadcast_text(group, mine));
  // Everybody learns what the first worker that differs has found.
  std::vector<char> all(static_cast<size_t>(group.size()) * 256, '\0');
  std::array<char, 256> own{};
  std::memcpy(own.data(), found.data(), std::min(found.size(), own.size() - 1));
  group.all_gather(std::as_bytes(std::span(own)), std::as_writable_bytes(std::span(all)), {},
                   {.label = "agreement"});
  for (int rank = 0; rank < group.size(); ++rank) {
    const std::string text(all.data() + static_cast<size_t>(rank) * own.size());
    require(text.empty(), ErrorKind::invalid_argument,
            "the workers were started differently: {}; start all with the same configuration, data "
            "and version",
            text);
  }
}

}  // namespace artel
