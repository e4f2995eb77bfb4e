#include <fmt/format.h>

#include <cctype>

#include "tests/model_fuzz/layer_text.h"
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
    const bool name = at > 0 && std::isalpha(static_cast<unsigned char>(text[at - 1])) &&
                      text[at - 1] != 'x';  // of a value or a layer
    if (end > at && !fraction && !name && end - at < 9) {
      const int value = std::stoi(text.substr(at, end - at));
      for (const int next : {1, value / 2, value - 1})
        if (next > 0 && next < value)
          results.push_back(text.substr(0, at) + std::to_string(next) + text.substr(end));
    }
    at = std::max(end, at + 1);
  }
  return results;
}

// The text without one " word [number]" option.
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

class Simplification {
 public:
  explicit Simplification(const NetworkCase& network) : network_(network) {}

  std::vector<NetworkCase> all() {
    for (const Words& words : fewer_parts(words_of(network_.layers)))
      with([&](NetworkCase& c) { c.layers = layers_of(words); });
    simpler_run();
    simpler_training();
    simpler_data();
    for (size_t i = 0; i < network_.layers.size(); ++i)
      for (const auto& texts :
           {fewer_words(network_.layers[i]), smaller_numbers(network_.layers[i])})
        for (const std::string& text : texts) with([&](NetworkCase& c) { c.layers[i] = text; });
    return std::move(results_);
  }

 private:
  template <typename Change>
  void with(const Change& change) {
    change(results_.emplace_back(network_));
  }

  void off(bool NetworkCase::*flag) {
    if (network_.*flag) with([&](NetworkCase& c) { c.*flag = false; });
  }

  // Each of a list left out in turn.
  void fewer(auto NetworkCase::*list) {
    for (size_t i = 0; i < (network_.*list).size(); ++i)
      with([&](NetworkCase& c) { (c.*list).erase((c.*list).begin() + static_cast<long>(i)); });
  }

  void simpler_run() {
    if (network_.workers > 1) with([](NetworkCase& c) { c.workers = 1, c.mesh = {}; });
    for (const MeshSetting& mesh : simpler(network_.mesh))
      with([&](NetworkCase& c) { c.mesh = mesh; });
    for (int64_t workers = 2; workers < network_.workers; ++workers)
      with([&](NetworkCase& c) { c.workers = workers; });
    if (network_.resumed_workers > 0) with([](NetworkCase& c) { c.resumed_workers = 0; });
    if (network_.schedule != "constant") with([](NetworkCase& c) { c.schedule = "constant"; });
    if (network_.threads > 1) with([](NetworkCase& c) { c.threads = 1; });
    if (network_.lanes > 1) with([](NetworkCase& c) { c.lanes = c.workers = 1, c.mesh = {}; });
    if (network_.lanes > std::max<int64_t>(2, network_.workers))
      with([](NetworkCase& c) { --c.lanes; });
    if (network_.last_batch > 0) with([](NetworkCase& c) { c.last_batch = 0; });
    if (network_.steps > 1) with([](NetworkCase& c) { c.steps = 1, c.last_batch = 0; });
    if (network_.steps > 1) with([](NetworkCase& c) { --c.steps; });
    if (network_.batch > 1)
      with(
          [](NetworkCase& c) { c.batch = c.lanes = c.workers = 1, c.last_batch = 0, c.mesh = {}; });
    if (network_.batch > std::max(network_.lanes, network_.last_batch + 1))
      with([](NetworkCase& c) { --c.batch; });
    off(&NetworkCase::limit_memory);
    off(&NetworkCase::tune);
    off(&NetworkCase::exact_convolutions);
  }

  void simpler_training() {
    if (network_.optimizer.size() > 1 || network_.optimizer.at("name") != "sgd")
      with([](NetworkCase& c) { c.optimizer = {{"name", "sgd"}}; });
    for (const auto& [key, value] : network_.optimizer)
      if (key != "name") with([key = key](NetworkCase& c) { c.optimizer.erase(key); });
    if (network_.loss != "mse")
      with([](NetworkCase& c) {
        c.loss = "mse", c.label_smoothing = 0, c.shares = c.ignored = c.lines = false,
        c.target_mean = 0;
        c.class_weights.clear();
      });
    if (!network_.class_weights.empty()) with([](NetworkCase& c) { c.class_weights.clear(); });
    if (network_.label_smoothing > 0) with([](NetworkCase& c) { c.label_smoothing = 0; });
    if (network_.target_mean != 0) with([](NetworkCase& c) { c.target_mean = 0; });
    off(&NetworkCase::shares);
    off(&NetworkCase::ignored);
    off(&NetworkCase::lines);
    off(&NetworkCase::flat_target);
    fewer(&NetworkCase::metrics);
    fewer(&NetworkCase::freeze);
  }

  void simpler_data() {
    if (network_.samples.size() > 1) with([](NetworkCase& c) { c.samples.pop_back(); });
    if (network_.tokens > 0) with([](NetworkCase& c) { c.tokens = 0; });
    if (network_.tokens > 1) with([](NetworkCase& c) { c.tokens = 1; });
    for (size_t i = 0; i < network_.samples.size(); ++i) {
      const Shape& shape = network_.samples[i];
      for (int axis = 0; axis < shape.rank(); ++axis) {
        if (shape.rank() > 1)
          with([&](NetworkCase& c) {
            std::vector<int64_t> extents = shape.extents();
            extents.erase(extents.begin() + axis);
            c.samples[i] = Shape(extents);
          });
        for (const int64_t extent : {int64_t{1}, shape[axis] / 2, shape[axis] - 1})
          if (extent > 0 && extent < shape[axis])
            with([&](NetworkCase& c) { c.samples[i][axis] = extent; });
      }
    }
  }

  const NetworkCase& network_;
  std::vector<NetworkCase> results_;
};

}  // namespace

std::vector<NetworkCase> simpler(const NetworkCase& network) {
  return Simplification(network).all();
}

}  // namespace artel::model_fuzz
