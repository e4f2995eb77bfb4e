#include <fmt/format.h>

#include <cctype>

#include "tests/model_fuzz/network_case.h"

namespace artel::model_fuzz {
namespace {

// The text with each of its whole numbers made smaller in turn.
std::vector<std::string> smaller_numbers(const std::string& text) {
  std::vector<std::string> results;
  for (size_t at = 0; at < text.size();) {
    const auto digit = [&](size_t i) {
      return i < text.size() && std::isdigit(static_cast<unsigned char>(text[i]));
    };
    size_t end = at;
    while (digit(end)) ++end;
    const bool fraction =
        (at > 0 && text[at - 1] == '.') || (end < text.size() && text[end] == '.');
    if (end > at && !fraction && end - at < 9) {
      const int value = std::stoi(text.substr(at, end - at));
      for (const int next : {1, value / 2, value - 1})
        if (next > 0 && next < value)
          results.push_back(text.substr(0, at) + std::to_string(next) + text.substr(end));
    }
    at = std::max(end, at + 1);
  }
  return results;
}

// The text without one " word [number]" option, or with a block's `{ a | b }` opened.
std::vector<std::string> fewer_words(const std::string& text) {
  std::vector<std::string> results;
  for (size_t at = text.find(' '); at != std::string::npos; at = text.find(' ', at + 1)) {
    const size_t next = text.find(' ', at + 1);
    results.push_back(text.substr(0, at) + (next == std::string::npos ? "" : text.substr(next)));
    if (next == std::string::npos) continue;
    const size_t third = text.find(' ', next + 1);
    results.push_back(text.substr(0, at) + (third == std::string::npos ? "" : text.substr(third)));
  }
  return results;
}

}  // namespace

std::vector<NetworkCase> simpler(const NetworkCase& network) {
  std::vector<NetworkCase> results;
  const auto with = [&](auto&& change) {
    NetworkCase next = network;
    change(next);
    results.push_back(std::move(next));
  };
  for (size_t i = 0; i < network.layers.size(); ++i)
    if (network.layers.size() > 1)
      with([&](NetworkCase& c) { c.layers.erase(c.layers.begin() + static_cast<long>(i)); });
  if (network.workers > 1) with([](NetworkCase& c) { c.workers = 1; });
  if (network.threads > 1) with([](NetworkCase& c) { c.threads = 1; });
  if (network.lanes > 1) with([](NetworkCase& c) { c.lanes = 1; });
  if (network.lanes > 2) with([](NetworkCase& c) { --c.lanes; });
  if (network.steps > 1) with([](NetworkCase& c) { c.steps = 1; });
  if (network.batch > 1) with([](NetworkCase& c) { c.batch = 1, c.lanes = 1; });
  if (network.batch > network.lanes) with([](NetworkCase& c) { --c.batch; });
  if (network.limit_memory) with([](NetworkCase& c) { c.limit_memory = false; });
  if (network.tune) with([](NetworkCase& c) { c.tune = false; });
  if (network.optimizer.size() > 1 || network.optimizer.at("name") != "sgd")
    with([](NetworkCase& c) { c.optimizer = {{"name", "sgd"}}; });
  if (network.loss != "mse") with([](NetworkCase& c) { c.loss = "mse", c.label_smoothing = 0; });
  if (network.label_smoothing > 0) with([](NetworkCase& c) { c.label_smoothing = 0; });
  for (size_t i = 0; i < network.layers.size(); ++i) {
    for (const auto& texts : {fewer_words(network.layers[i]), smaller_numbers(network.layers[i])})
      for (const std::string& text : texts) with([&](NetworkCase& c) { c.layers[i] = text; });
  }
  for (int axis = 0; axis < network.sample.rank(); ++axis)
    for (const int64_t extent : {int64_t{1}, network.sample[axis] / 2, network.sample[axis] - 1})
      if (extent > 0 && extent < network.sample[axis])
        with([&](NetworkCase& c) { c.sample[axis] = extent; });
  return results;
}

}  // namespace artel::model_fuzz
