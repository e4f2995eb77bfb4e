#include "artel/train/parts/own_state.h"

#include <algorithm>
#include <numeric>
#include <sstream>

#include "artel/train/loop/agreement.h"

namespace artel {
namespace {

// One line per part: its number of floats, then its name, which may contain blanks.
std::string contents_of(const OwnState& state) {
  std::string text;
  for (const auto& [name, values] : state) text += fmt::format("{} {}\n", values.size(), name);
  return text;
}

// A state with these contents, all zeros.
OwnState room_for(const std::string& contents) {
  OwnState state;
  std::istringstream lines(contents);
  size_t floats = 0;
  std::string name;
  while (lines >> floats && lines.ignore() && std::getline(lines, name)) state[name].resize(floats);
  return state;
}

}  // namespace

void keep_residuals(const comm::ErrorFeedback& feedback, const std::string& name, OwnState& state) {
  state[name + "/values"] = feedback.of_values;
  state[name + "/sum"] = feedback.of_sum;
  state[name + "/directions"] = feedback.directions;
}

void restore_residuals(const OwnState& state, const std::string& name,
                       comm::ErrorFeedback& feedback) {
  const auto restore = [&](const char* part, std::vector<float>& values) {
    if (const auto found = state.find(name + part); found != state.end()) values = found->second;
  };
  restore("/values", feedback.of_values);
  restore("/sum", feedback.of_sum);
  restore("/directions", feedback.directions);
}

// Part by part, so that worker 0 holds no data twice.
std::vector<OwnState> gather_states(comm::Group& group, const OwnState& own) {
  std::vector<OwnState> all;
  for (const std::string& contents : gather_text(group, contents_of(own)))
    all.push_back(room_for(contents));
  std::vector<OwnState::iterator> next;
  for (OwnState& state : all) next.push_back(state.begin());
  constexpr size_t kNoMore = SIZE_MAX;
  for (auto part = own.begin();;) {
    const size_t mine = part == own.end() ? kNoMore : part->second.size() * sizeof(float);
    std::vector<size_t> sizes(static_cast<size_t>(group.size()));
    group.all_gather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(sizes)),
                     {}, {.label = "sizes of states"});
    if (std::ranges::count(sizes, kNoMore) == std::ssize(sizes)) return all;
    std::replace(sizes.begin(), sizes.end(), kNoMore, size_t{0});
    std::vector<std::byte> received(
        all.empty() ? 0 : std::accumulate(sizes.begin(), sizes.end(), size_t{0}));
    std::span<const std::byte> sent;
    if (part != own.end()) sent = std::as_bytes(std::span(part++->second));
    group.gather(sent, received, 0, sizes, {.label = "states of workers"});
    const std::byte* from = received.data();
    for (size_t worker = 0; worker < all.size(); ++worker) {
      if (next[worker] == all[worker].end()) continue;
      const auto to = std::as_writable_bytes(std::span(next[worker]++->second));
      std::copy_n(from, to.size(), to.begin());
      from += to.size();
    }
  }
}

}  // namespace artel
