#include "artel/transfer/blocks.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <set>

#include "artel/base/error.h"
#include "artel/base/text.h"
#include "artel/graph/op.h"
#include "artel/predict/batches.h"

namespace artel::transfer {
namespace {

bool is_number(std::string_view part) {
  return !part.empty() && std::ranges::all_of(part, [](char c) { return c >= '0' && c <= '9'; });
}

// The layer of a parameter such as "layer4.1.conv1.weight", or the parameter itself.
std::vector<std::string> path_of(const std::string& parameter) {
  std::vector<std::string> parts = split(parameter, '.');
  if (parts.size() > 1) parts.pop_back();
  return parts;
}

bool has_index(const std::vector<std::string>& path) {
  return std::ranges::any_of(path, [](const std::string& part) { return is_number(part); });
}

// The path prefixes before the first number: `features` of `features.28.weight`.
std::set<std::string> indexed_scopes(const std::vector<std::string>& parameters) {
  std::set<std::string> scopes;
  for (const std::string& parameter : parameters) {
    const std::vector<std::string> path = path_of(parameter);
    if (!has_index(path)) continue;
    std::string scope;
    for (const std::string& part : path) {
      if (is_number(part)) break;
      scope += (scope.empty() ? "" : ".") + part;
      scopes.insert(scope);
    }
  }
  return scopes;
}

std::string key_of(const std::string& parameter, const std::set<std::string>& indexed) {
  const std::vector<std::string> path = path_of(parameter);
  std::string key;
  for (const std::string& part : path) {
    key += (key.empty() ? "" : ".") + part;
    if (has_index(path) ? is_number(part) : !indexed.contains(key)) break;
  }
  return key;
}

bool multiplies(const Node& node) {
  static const std::set<std::string, std::less<>> light = {
      "batch_norm", "batch_norm_inference", "layer_norm", "rms_norm", "add", "mul",
      "concat",     "broadcast_to",         "slice",      "reshape"};
  return !light.contains(node.op->name);
}

struct Found {
  std::string key;
  bool heavy = false;
  int64_t parameters = 0;
};

}  // namespace

std::vector<Block> blocks_of(const Model& model, const TensorType& sample) {
  Graph graph;
  nn::Build build(graph, false);
  const Value x = graph.input("x", batch_of(sample, 1));
  build.set_input("x", x);
  model.network()(build, x);

  std::vector<std::string> names;
  for (const ValueId id : graph.of_kind(ValueKind::parameter))
    names.push_back(graph.value(id).name);
  const std::set<std::string> indexed = indexed_scopes(names);
  std::vector<Found> found;
  std::map<std::string, size_t> places;
  std::set<ValueId> seen;
  for (NodeId id = 0; id < static_cast<NodeId>(graph.nodes().size()); ++id)
    for (const ValueId input : graph.node(id).inputs) {
      const ValueData& value = graph.value(input);
      if (value.kind != ValueKind::parameter) continue;
      const std::string key = key_of(value.name, indexed);
      const auto [place, is_new] = places.emplace(key, found.size());
      if (is_new) found.push_back({key});
      Found& block = found[place->second];
      block.heavy = block.heavy || multiplies(graph.node(id));
      if (seen.insert(input).second) block.parameters += value.type.shape.elements();
    }
  require(!found.empty(), ErrorKind::invalid_argument, "the network has no parameters to train");

  // A layer without a matrix product joins the preceding block, or the first block that has one.
  std::vector<Block> blocks;
  std::vector<Found> waiting;
  for (const Found& each : found) {
    if (!each.heavy && blocks.empty()) {
      waiting.push_back(each);
      continue;
    }
    if (each.heavy) blocks.push_back({.name = each.key});
    Block& block = blocks.back();
    for (const Found& part : std::exchange(waiting, {})) {
      block.prefixes.push_back(part.key);
      block.parameters += part.parameters;
    }
    block.prefixes.push_back(each.key);
    block.parameters += each.parameters;
  }
  require(!blocks.empty(), ErrorKind::invalid_argument,
          "the network has no layer that multiplies a matrix, expected one");
  for (Block& block : blocks)
    for (std::string& prefix : block.prefixes)
      if (!graph.find(prefix)) prefix += '.';  // "layer1.1." is not layer1.10
  for (size_t i = 0; i < blocks.size(); ++i)
    blocks[i].output = i + 1 < blocks.size() ? "before " + blocks[i + 1].name : blocks[i].name;
  return blocks;
}

std::vector<bool> trained_blocks(const std::vector<Block>& blocks, const std::string& train) {
  const std::string text(trim(train));
  std::vector<bool> trained(blocks.size(), text == "all");
  trained.back() = true;
  if (text == "all" || text == "head") return trained;
  if (text.starts_with("last ")) {
    int64_t count = -1;
    const std::string number(trim(text.substr(5)));
    std::from_chars(number.data(), number.data() + number.size(), count);
    require(count >= 0 && count < std::ssize(blocks) && is_number(number),
            ErrorKind::invalid_argument,
            "train: got '{}', expected \"last N\" with N from 0 to {}, the blocks before the head",
            text, blocks.size() - 1);
    for (int64_t i = 0; i < count; ++i) trained[blocks.size() - 2 - static_cast<size_t>(i)] = true;
    return trained;
  }
  std::vector<std::string> known = {"head", "all", "last 2"};
  for (const Block& block : blocks) known.push_back(block.name);
  for (const std::string& part : split(text, ',')) {
    const std::string wanted(trim(part));
    bool any = false;
    for (size_t i = 0; i < blocks.size(); ++i) {
      const bool fits =
          !wanted.empty() && (blocks[i].name == wanted || blocks[i].name.starts_with(wanted + "."));
      trained[i] = trained[i] || fits;
      any = any || fits;
    }
    require(any, ErrorKind::invalid_argument,
            "train: got '{}', expected \"head\", \"last N\", \"all\" or names of blocks{}; they "
            "are {}",
            wanted, did_you_mean(wanted, known), join({known.begin() + 3, known.end()}, ", "));
  }
  return trained;
}

}  // namespace artel::transfer
