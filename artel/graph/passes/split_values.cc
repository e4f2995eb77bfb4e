#include "artel/graph/passes/split_values.h"

#include "artel/graph/op.h"

namespace artel {
namespace {

// Shards of parameters begin on cache lines.
constexpr int64_t kLineElements = 16;

}  // namespace

SplitValues::SplitValues(const Graph& source, const ShardPart& part)
    : source_(source), part_(part), held_(source.values().size()) {
  for (const ValueId id : source.of_kind(ValueKind::input)) whole(id);
}

Value SplitValues::whole(ValueId id) {
  Held& held = held_[id];
  if (held.whole) return held.whole;
  if (held.split)
    return held.whole = shard_gather(held.pieces, *held.split, shape(id)[held.split->axis], part_);
  return held.whole = target_.adopt(source_, id);
}

bool SplitValues::can_be_cut(ValueId id, const Split& split) const {
  const ValueData& value = source_.value(id);
  if (value.kind != ValueKind::parameter && value.kind != ValueKind::state) return false;
  const Held& held = held_[id];
  if (held.whole || held.split) return held.split == split;
  for (int shard = 0; shard < split.shards; ++shard)
    if (shard_begin(value.type.shape, split, shard) % kLineElements != 0) return false;
  return true;
}

const std::vector<Value>& SplitValues::pieces(ValueId id, const Split& split) {
  Held& held = held_[id];
  if (held.split == split) return held.pieces;
  if (can_be_cut(id, split)) {
    held.split = split;
    for (int shard = part_.first; shard < part_.last; ++shard)
      held.pieces.push_back(target_.shard(source_.value(id), split, shard));
    return held.pieces;
  }
  for (const auto& [known, slices] : held.slices)
    if (known == split) return slices;
  held.slices.emplace_back(split, shard_slices(whole(id), split, part_));
  return held.slices.back().second;
}

// Copies only values that may need a gradient.
const std::vector<Value>& SplitValues::copies(ValueId id) {
  Held& held = held_[id];
  const ValueData& value = source_.value(id);
  if (held.copies.empty()) {
    const bool constant = value.kind == ValueKind::input || value.kind == ValueKind::constant ||
                          value.type.dtype != DType::f32;
    held.copies = constant ? std::vector<Value>(static_cast<size_t>(part_.count()), whole(id))
                           : shard_copies(whole(id), part_);
  }
  return held.copies;
}

void SplitValues::set_split(ValueId id, const Split& split, std::vector<Value> pieces) {
  held_[id].split = split;
  held_[id].pieces = std::move(pieces);
}

void SplitValues::copy(const Node& node) {
  std::vector<Value> inputs;
  for (const ValueId input : node.inputs) inputs.push_back(whole(input));
  const std::vector<Value> results = target_.adopt(node, inputs);
  for (size_t i = 0; i < results.size(); ++i) set_whole(node.outputs[i], results[i]);
}

std::vector<std::vector<Value>> SplitValues::for_each_shard(
    const Node& node, const std::vector<std::vector<Value>>& inputs,
    const std::function<void(Attributes&, int shard)>& change) {
  std::vector<std::vector<Value>> outputs(node.outputs.size());
  for (int i = 0; i < part_.count(); ++i) {
    Node own = node;
    if (change) change(own.attributes, part_.first + i);
    std::vector<Value> arguments;
    for (const std::vector<Value>& input : inputs) arguments.push_back(input[i]);
    const std::vector<Value> results = target_.adopt(own, arguments);
    for (size_t o = 0; o < results.size(); ++o) outputs[o].push_back(results[o]);
  }
  return outputs;
}

Graph SplitValues::finish() {
  for (const ValueKind kind : {ValueKind::parameter, ValueKind::state})
    for (const ValueId id : source_.of_kind(kind)) follow_observed(id);
  for (const auto& [name, value] : source_.outputs()) target_.set_output(name, whole(value));
  for (const StateUpdate& update : source_.state_updates()) add_update(update);
  return std::move(target_);
}

// A state is cut like the value it tracks.
void SplitValues::follow_observed(ValueId state) {
  for (const StateUpdate& update : source_.state_updates())
    if (update.state == state && is_split(update.observed) &&
        can_be_cut(state, split_at(update.observed)))
      pieces(state, split_at(update.observed));
  if (!is_split(state)) whole(state);
}

void SplitValues::add_update(const StateUpdate& update) {
  if (!is_split(update.state)) {
    target_.update_state(whole(update.state), whole(update.observed), update.momentum);
    return;
  }
  const std::vector<Value>& observed = pieces(update.observed, split_at(update.state));
  for (size_t i = 0; i < observed.size(); ++i)
    target_.update_state(pieces_of(update.state)[i], observed[i], update.momentum);
}

}  // namespace artel
