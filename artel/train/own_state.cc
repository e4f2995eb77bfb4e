#include "artel/train/own_state.h"

#include <algorithm>
#include <sstream>

#include "artel/train/agreement.h"

namespace artel {
namespace {

// One line for each part: its number of floats, then its name, which may contain blanks.
std::string contents_of(const OwnState& state) {
  std::string text;
  for (const auto& [name, values] : state) text += fmt::format("{} {}\n", values.size(), name);
  return text;
}

size_t bytes_of(const OwnState& state) {
  size_t floats = 0;
  for (const auto& [name, values] : state) floats += values.size();
  return floats * sizeof(float);
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

std::vector<std::byte> joined(const std::vector<OwnState>& states) {
  std::vector<std::byte> bytes;
  for (const OwnState& state : states)
    for (const auto& [name, values] : state) {
      const auto part = std::as_bytes(std::span(values));
      bytes.insert(bytes.end(), part.begin(), part.end());
    }
  return bytes;
}

// Fills the states one after another; the inverse of `joined`.
void fill(std::span<const std::byte> bytes, std::span<OwnState> states) {
  for (OwnState& state : states)
    for (auto& [name, values] : state) {
      const auto part = std::as_writable_bytes(std::span(values));
      std::copy_n(bytes.begin(), part.size(), part.begin());
      bytes = bytes.subspan(part.size());
    }
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

std::vector<OwnState> gather_states(comm::Group& group, const OwnState& own) {
  std::vector<OwnState> all;
  for (const std::string& contents : gather_text(group, contents_of(own)))
    all.push_back(room_for(contents));
  std::vector<size_t> sizes(static_cast<size_t>(group.size()));
  const size_t mine = bytes_of(own);
  group.all_gather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(sizes)), {},
                   {.label = "sizes of states"});
  const std::vector<std::byte> bytes = joined({own});
  std::vector<std::byte> received;
  if (group.rank() == 0)
    for (const size_t size : sizes) received.resize(received.size() + size);
  group.gather(bytes, received, 0, sizes, {.label = "states of workers"});
  fill(received, all);
  return all;
}

}  // namespace artel
